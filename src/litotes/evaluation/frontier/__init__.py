"""What a saving costs: shares of pieces searched for, losses measured with their intervals."""
