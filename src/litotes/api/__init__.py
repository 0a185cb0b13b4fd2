"""The functions behind the public names: what a command does, called from Python."""
