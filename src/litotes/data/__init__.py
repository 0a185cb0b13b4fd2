"""Data: sources are read into a `Corpus`, which is selected from, divided, and audited for whatever
would spoil a score.
"""
