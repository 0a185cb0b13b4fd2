"""litotes: sentiment and sarcasm across varieties of English. Saying less to mean more."""

from litotes.core.version import __version__ as __version__
