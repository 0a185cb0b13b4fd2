"""An encoder-decoder: a text becomes another text."""

from litotes.training.translation.recipe import TranslationRecipe, read_translation_recipe
from litotes.training.translation.run import TranslationRun, train_translation
from litotes.training.translation.scores import score_translations
from litotes.training.translation.translator import Translation, Translator

__all__ = [
    "Translation",
    "TranslationRecipe",
    "TranslationRun",
    "Translator",
    "read_translation_recipe",
    "score_translations",
    "train_translation",
]
