"""Texts in, words with their answers out: how every consumer asks a model of words."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, islice
from pathlib import Path
from typing import overload

from litotes.core.errors import UserError
from litotes.core.machine import choose_device
from litotes.core.progress import Watch, ignore_progress
from litotes.core.registry import pick
from litotes.core.text import one_line
from litotes.core.values import BadText, Stretch, Task, WordAnswer, WordPrediction
from litotes.data.words import (
    CutWord,
    Span,
    WordExample,
    check_words,
    cut_text,
    entities_of,
    is_bio,
)
from litotes.encoder.packing import Window
from litotes.model.checkpoint import SavedWordModel, load_word_model
from litotes.model.folder import ModelFolder
from litotes.prediction.predictor import BAD_TEXTS, find_problems, written_text
from litotes.training.tagging.answers import TextAnswers, answer_texts, fair_words, make_windows
from litotes.training.tagging.answers import evaluate_words as score_words
from litotes.training.tagging.scores import WordScores

Asked = str | Sequence[str] | BadText
"""A text, the words of one, or why it cannot be read."""

_AT_ONCE = 512
"""Texts of a stream that are answered together."""


class Tagger:
    """A model that answers words, ready to be asked.

    >>> tagger = Tagger.load("runs/parts-of-speech")                      # doctest: +SKIP
    >>> tagger.predict("Lovely. Another delay.").tags                     # doctest: +SKIP
    ('ADJ', 'PUNCT', 'DET', 'NOUN', 'PUNCT')
    """

    def __init__(self, model: SavedWordModel, *, device: str | None = None) -> None:
        self.model = model
        self.network = model.network.to(choose_device(device)).eval()

    def __repr__(self) -> str:
        return one_line(self, kind=self.kind, task=self.task.name, cutting=self.model.cutting)

    @classmethod
    def load(cls, model: str | Path | ModelFolder, *, device: str | None = None) -> Tagger:
        """model: the folder of a tagging or a span model."""
        return cls(load_word_model(model), device=device)

    @property
    def task(self) -> Task:
        return self.network.task

    @property
    def kind(self) -> str:
        """Tagging or span."""
        return self.network.kind

    @overload
    def predict(  # type: ignore[overload-overlap]  # a string is a sequence of strings
        self, texts: str, *, bad_texts: str = "stop"
    ) -> WordPrediction: ...

    @overload
    def predict(
        self, texts: Sequence[Asked], *, bad_texts: str = "stop"
    ) -> list[WordPrediction]: ...

    def predict(
        self, texts: str | Sequence[Asked], *, bad_texts: str = "stop"
    ) -> WordPrediction | list[WordPrediction]:
        """A prediction per text, in order; of one text that is not in a list, its prediction.

        texts: strings, which are cut into words as the model's training texts were, or sequences
        of words that are cut already. bad_texts: `stop` raises at one that is empty, `empty` gives
        it a problem.
        """
        if isinstance(texts, str):
            return self._predict([texts], bad_texts=bad_texts)[0]
        return self._predict(texts, bad_texts=bad_texts)

    def predict_stream(
        self, texts: Iterable[Asked], *, bad_texts: str = "empty"
    ) -> Iterator[WordPrediction]:
        """The same for any number of texts, as they come."""
        waiting, first = iter(texts), 1
        while some := list(islice(waiting, _AT_ONCE)):
            yield from self._predict(some, bad_texts=bad_texts, first=first)
            first += len(some)

    def _predict(
        self, texts: Sequence[Asked], *, bad_texts: str, first: int = 1
    ) -> list[WordPrediction]:
        """first: the number of the first text, for error messages."""
        pick(BAD_TEXTS, bad_texts, "treatment of bad texts")
        written = [_as_text(text) for text in texts]
        problems = find_problems(written, [None] * len(written), first=first)
        if problems and bad_texts == "stop":
            raise UserError(next(iter(problems.values())))
        cut = [self._cut(text) for place, text in enumerate(texts) if place not in problems]
        words = [[word.written for word in own] for own in cut]
        windows = make_windows(words, self.model.tokenizer, self.kind)
        answered = zip(cut, windows, answer_texts(self.network, windows), strict=True)
        return [
            WordPrediction(text, self.task.name, self.kind, problem=problems[place])
            if place in problems
            else self._prediction(text, *next(answered))
            for place, text in enumerate(map(written_text, written))
        ]

    def _cut(self, text: Asked) -> tuple[CutWord, ...]:
        if isinstance(text, str):
            return cut_text(text, self.model.cutting)
        assert not isinstance(text, BadText)
        words = check_words(text, "A list of words")
        starts = accumulate((len(word) + 1 for word in words), initial=0)
        cut = zip(words, starts, strict=False)
        return tuple(CutWord(word, start, start + len(word)) for word, start in cut)

    def _prediction(
        self,
        text: str,
        cut: Sequence[CutWord],
        windows: Sequence[Window],
        answers: TextAnswers,
    ) -> WordPrediction:
        words = tuple(_answer(word, place, answers, self.task) for place, word in enumerate(cut))
        stretches: tuple[Stretch, ...] = ()
        if answers.span is not None:
            stretches = (_stretch(text, cut, answers.span),)
        elif is_bio(self.task.labels):
            found = entities_of([word.label for word in words])
            stretches = tuple(_stretch(text, cut, (one.start, one.end), one.kind) for one in found)
        return WordPrediction(
            text,
            self.task.name,
            self.kind,
            self.task.labels,
            words,
            stretches,
            answers.probability,
            truncated=any(window.pieces.truncated for window in windows),
            unreadable=all(window.pieces.unreadable for window in windows),
        )


def _as_text(text: Asked) -> str | BadText:
    if isinstance(text, str | BadText) or not isinstance(text, Sequence):
        return text
    return WordExample(tuple(text)).text


def _answer(word: CutWord, place: int, answers: TextAnswers, task: Task) -> WordAnswer:
    if answers.probabilities is None:
        return WordAnswer(word.written, word.start, word.end)
    probability, number = answers.probabilities[place].max(-1)
    label = task.labels[int(number)]
    return WordAnswer(word.written, word.start, word.end, label, float(probability))


def _stretch(text: str, cut: Sequence[CutWord], span: Span, kind: str | None = None) -> Stretch:
    start, end = cut[span[0]].start, cut[span[1] - 1].end
    return Stretch(text[start:end], start, end, *span, kind)


def evaluate_words(
    model: str | Path,
    data: str,
    *,
    seed: int = 0,
    device: str | None = None,
    watch: Watch = ignore_progress,
) -> WordScores:
    """Scores a model that answers words, with 95 % intervals over texts.

    data: a source of words such as `ud-ewt:PATH`. Its test split is scored, or, without one, the
    texts that the model was not trained on, with a warning that says so.
    """
    tagger, corpus = Tagger.load(model, device=device), fair_words(data, model)
    for note in corpus.notes:
        warnings.warn(note, stacklevel=2)
    return score_words(tagger.network, tagger.model.tokenizer, corpus, seed=seed, watch=watch)
