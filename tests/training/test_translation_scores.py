"""BLEU and chrF are those of sacrebleu, over any number of references; the intervals hold them."""

from __future__ import annotations

import numpy as np
import pytest

from litotes.core.errors import UserError
from litotes.training.translation.scores import draw_samples, resample_scores, score_translations

sacrebleu = pytest.importorskip("sacrebleu", reason="BLEU needs sacrebleu")

SAID = ["the cat sat on the mat", "a dog runs in the park", "two men talk", "it rains again today"]
MEANT = [
    ("the cat sat on a mat", "a cat was on the mat"),
    ("a dog runs through the park",),
    ("two men are talking", "two men talk"),
    ("it is raining again",),
]


def test_scores_are_sacrebleus() -> None:
    scores = score_translations(SAID, [one[:1] for one in MEANT])
    first = [[one[0] for one in MEANT]]
    assert scores.bleu.value == pytest.approx(sacrebleu.corpus_bleu(SAID, first).score)
    assert scores.chrf.value == pytest.approx(sacrebleu.corpus_chrf(SAID, first).score)
    assert "tok:13a" in scores.bleu.signature
    low, high = scores.bleu.interval
    assert 0 <= low <= scores.bleu.value <= high <= 100.001


def test_several_references_help() -> None:
    one = score_translations(SAID, [meant[:1] for meant in MEANT])
    both = score_translations(SAID, MEANT)
    assert both.bleu.value > one.bleu.value
    assert both.n == 4


def test_a_sample_of_all_texts_is_the_score() -> None:
    everything = np.arange(4)[None]
    found = resample_scores(SAID, MEANT, everything)
    scores = score_translations(SAID, MEANT)
    assert found["bleu"][0] == pytest.approx(scores.bleu.value)
    assert found["chrf"][0] == pytest.approx(scores.chrf.value)
    assert draw_samples(4).shape == (1000, 4)


def test_missing_texts_are_refused() -> None:
    with pytest.raises(UserError, match="3 translations and 4 references"):
        score_translations(SAID[:3], MEANT)
    with pytest.raises(UserError, match="no translation"):
        score_translations([], [])
