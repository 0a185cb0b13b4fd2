"""What an exported file is called, what its inputs are called, and what it says about itself. Nothing here needs torch."""

FILE = "model.onnx"
PIECES, SEGMENTS = "pieces", "segments"
HASH_OF = "sha256 of "
"""Begins the facts that say which files of a model folder the file was made from."""
