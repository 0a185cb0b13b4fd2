"""The ONNX graph of a classifier, written operator by operator, checked before it is run."""
