"""Triton kernels for what stands between the products of a layer."""
