"""A classifier and the folder it lives in: weights, tokenizer, calibration, card."""
