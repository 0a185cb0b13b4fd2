"""Answers on a GPU: texts in buckets of pieces, one captured pass a bucket."""
