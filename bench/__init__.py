"""Measurements side by side with rivals: `python -m bench [WHAT]`.

A new bench is one file and one line in `MODEL_BENCHES` or `PART_BENCHES` (measure.py); those of a
GPU have a table of their own (gpu/groups.py). `trials/` damages, kills and floods.
"""
