"""The version, where every package can read it without importing the public names."""

__version__ = "0.1.0"
