"""litotes: saying less to mean more. Sentiment and sarcasm across varieties of English and across domains."""

__version__ = "0.1.0"
