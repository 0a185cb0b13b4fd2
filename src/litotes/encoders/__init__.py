"""Text pieces in, hidden states out. The encoder is ours, the weights are everyone's."""
