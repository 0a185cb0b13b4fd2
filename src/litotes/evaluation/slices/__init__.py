"""Slices found, not given: the texts a model is worse on, by what they look like."""
