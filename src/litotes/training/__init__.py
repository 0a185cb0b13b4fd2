"""From labelled texts to a trained classifier."""
