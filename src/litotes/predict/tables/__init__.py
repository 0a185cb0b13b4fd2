"""Tables of any size, answered part by part: here, in several processes, or on a Ray cluster."""
