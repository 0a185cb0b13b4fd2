"""A classifier ready to compute, by torch or by ONNX Runtime from one exported file."""
