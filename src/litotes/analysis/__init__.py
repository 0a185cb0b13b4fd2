"""Seeing inside: what a model's attention does over a corpus, and what one answer rests on."""
