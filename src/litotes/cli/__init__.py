"""The command line: parsing and printing around plain functions."""
