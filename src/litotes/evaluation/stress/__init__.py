"""Which features of a variety change a model's answers: measure, statistics, figure, page."""
