"""gpu: everything that was promised of a GPU, in one run (`python -m bench gpu`).

A new group is one function from a `GpuBench` to a `GpuGroup` and one line in `GROUPS` (groups.py).
"""
