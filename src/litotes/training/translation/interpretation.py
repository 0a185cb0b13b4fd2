"""What a sarcastic text means, plainly said.

A translation model that has learned from sarcastic texts and their interpretations (Peled and
Reichart 2017, arXiv 1704.06836) rewrites anything it is given. So a classifier of sarcasm is asked
first: a text that it takes literally means what it says, and so does one that the model leaves as
it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from litotes.core.errors import UserError
from litotes.core.text import one_line
from litotes.data.corpus import SARCASM
from litotes.prediction.predictor import Predictor
from litotes.training.translation.translator import Translation, Translator

SAME = "same as said"


@dataclass(frozen=True)
class Interpretation:
    """What a text means. meaning: None where it means what it says.

    why_same: who says so. sarcasm: the judge's probability that the text is sarcastic; None without
    a judge.
    """

    text: str
    meaning: str | None
    why_same: str | None
    sarcasm: float | None
    truncated: bool = False

    def __repr__(self) -> str:
        return one_line(self, text=self.text, meaning=self.meaning or SAME)

    def as_json(self) -> dict[str, Any]:
        return {
            "text": self.text,
            "meaning": self.meaning or SAME,
            "same_as_said": self.meaning is None,
            "why_same": self.why_same,
            "sarcasm": self.sarcasm,
            "truncated": self.truncated,
        }


def interpret(
    texts: Sequence[str],
    translator: Translator,
    judge: Predictor | None,
    *,
    beams: int | None = None,
) -> list[Interpretation]:
    """judge: a model with the task sarcasm; None: every text is taken to be sarcastic."""
    found = translator.translate(texts, beams=beams)
    judged = [None] * len(texts) if judge is None else _sarcasm(texts, judge)
    answers = []
    for one, sarcasm in zip(found, judged, strict=True):
        why = _why_same(one, sarcasm)
        meaning = one.output if why is None else None
        probability = None if sarcasm is None else sarcasm[1]
        answers.append(Interpretation(one.text, meaning, why, probability, one.truncated))
    return answers


def _sarcasm(texts: Sequence[str], judge: Predictor) -> list[tuple[bool, float] | None]:
    """Whether each text is sarcastic, and how probable that is."""
    word = SARCASM.labels[1]
    task = judge.tasks.get(SARCASM.name)
    if task is None or word not in task.labels:
        raise UserError(
            f"The judge does not answer sarcasm with {word!r}, only {', '.join(judge.tasks)}. Give"
            " --judge another model, or --judge none."
        )
    found: list[tuple[bool, float] | None] = []
    for prediction in judge.predict(list(texts)):
        answer = prediction.answers[SARCASM.name]
        found.append((answer.label == word, answer.probabilities[word]))
    return found


def _why_same(translation: Translation, sarcasm: tuple[bool, float] | None) -> str | None:
    if sarcasm is not None and not sarcasm[0]:
        return "the judge sees no sarcasm"
    if _plain(translation.output) in ("", _plain(translation.text)):
        return "the model would change nothing"
    return None


def _plain(text: str) -> str:
    """Without case and blanks, by which a vocabulary may differ from the text."""
    return "".join(text.casefold().split())
