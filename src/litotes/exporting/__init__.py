"""A classifier as one ONNX file: the graph written operator by operator, the loss against torch
measured before it is kept.
"""
