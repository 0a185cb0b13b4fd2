"""Masked-language modelling on unlabelled text."""
