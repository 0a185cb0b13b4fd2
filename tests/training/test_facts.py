"""What a user is told about the texts that were learned from."""

from __future__ import annotations

from litotes.core.values import Example
from litotes.data.corpus import SARCASM, Corpus
from litotes.encoder import pretrained
from litotes.encoder.packing import make_text_set
from litotes.training.classification import training_notes
from litotes.training.recipe import Recipe
from litotes.training.training_data import TrainingData


def test_cut_and_unreadable_training_texts_are_counted(tiny: pretrained.Pretrained) -> None:
    examples = tuple(Example(text, {"sarcasm": "literal"}) for text in ("x " * 300, "😀", "tea"))
    corpus = Corpus("made", examples, {"sarcasm": SARCASM})
    data = TrainingData(corpus, corpus, corpus, None, None, ())
    texts = make_text_set(examples, [SARCASM], tiny.tokenizer)
    cut, unreadable = training_notes(Recipe(), data, texts, 0.5)
    assert cut.startswith("1 of 3 training texts are longer than the encoder reads")
    assert unreadable.startswith("1 of 3 training texts are unreadable")
