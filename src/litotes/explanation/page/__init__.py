"""The page of one explanation: `why.html`, one file that needs nothing else."""
