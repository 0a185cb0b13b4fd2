"""What one answer rests on: attribution methods, effective attention, the trace of a pruning, and
the page that shows them.
"""
