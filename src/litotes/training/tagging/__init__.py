"""Models that answer words: a label for each (tagging), or a stretch of them (span)."""
