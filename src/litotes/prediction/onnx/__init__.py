"""The ONNX file of a classifier: checked before it is run, then run without torch."""
