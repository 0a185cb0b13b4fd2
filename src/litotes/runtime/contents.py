"""What an exported file is called, what its inputs are called, and what it says about itself. Nothing here needs torch."""

FILE = "model.onnx"
NOTE = "export.json"
"""Written beside the file when it is whole, with its sha256."""
PRODUCER = "litotes"
PIECES, SEGMENTS = "pieces", "segments"
HASH_OF = "sha256 of "
"""Begins the facts that say which files of a model folder the file was made from."""
MOST_ROUNDS = 30
"""Of a loop in the file: `attention.simplex.MOST_ROUNDS`, which needs torch."""
