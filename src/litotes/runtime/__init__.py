"""A classifier outside torch: the ONNX file with everything inside, and the session that runs it."""
