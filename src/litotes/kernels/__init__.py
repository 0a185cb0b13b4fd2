"""Triton kernels for texts laid end to end; the plain path next to them is the definition.

Names in capitals are pointers, or known when a kernel is compiled. Only what is launched has to say
which (`tl.constexpr`): functions that a kernel calls are compiled into it, for what they are given.
"""
