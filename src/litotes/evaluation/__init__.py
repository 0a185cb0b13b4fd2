"""How good a model is, where, and how sure we are."""
