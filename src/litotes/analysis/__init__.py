"""What a model looks at: its attention, measured."""
