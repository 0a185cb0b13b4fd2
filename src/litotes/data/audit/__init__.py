"""The audit of a corpus: leaks, contradictions, duplicates, imbalance and over-long texts."""
