"""Figures of one explanation."""
