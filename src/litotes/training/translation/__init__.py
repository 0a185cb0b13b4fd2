"""An encoder-decoder: a text becomes another text."""

from litotes.training.translation.scores import score_translations
from litotes.training.translation.translator import Translation, Translator

__all__ = ["Translation", "Translator", "score_translations"]
