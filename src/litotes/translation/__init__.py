"""An encoder-decoder: a text becomes another text."""

from litotes.translation.recipe import TranslationRecipe, read_translation_recipe
from litotes.translation.run import TranslationRun, train_translation
from litotes.translation.scores import score_translations
from litotes.translation.translator import Translation, Translator

__all__ = [
    "Translation",
    "TranslationRecipe",
    "TranslationRun",
    "Translator",
    "read_translation_recipe",
    "score_translations",
    "train_translation",
]
