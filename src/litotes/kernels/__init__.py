"""Triton kernels for texts laid end to end; the plain path beside them is the definition."""
