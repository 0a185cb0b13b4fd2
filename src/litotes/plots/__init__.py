"""Pictures of results; matplotlib is imported where one is drawn."""
