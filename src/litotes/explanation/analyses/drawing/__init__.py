"""What the figures of all analyses share."""
