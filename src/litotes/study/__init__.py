"""A whole grid of runs as one file: plan → runs (scale/ executes them) → results → report."""
