"""Scores of a model of words on texts whose answers are known."""

from __future__ import annotations

from collections.abc import Sequence

from litotes.core.errors import UserError
from litotes.core.progress import Watch, ignore_progress
from litotes.core.values import Task
from litotes.data.words.corpus import Span, WordCorpus, WordExample
from litotes.encoder.tokenizer import PieceTokenizer
from litotes.model.classifier import WordModel
from litotes.training.tagging.answers import TextAnswers, answer_texts
from litotes.training.tagging.scores import WordScores, score_spans, score_tags
from litotes.training.tagging.word_set import make_windows


def evaluate_words(
    network: WordModel,
    tokenizer: PieceTokenizer,
    corpus: WordCorpus,
    *,
    seed: int = 0,
    watch: Watch = ignore_progress,
) -> WordScores:
    """corpus: of texts with the answers that this kind of model gives."""
    corpus = corpus.for_kind(network.kind)
    check_labels(corpus, network.task, network.kind)
    windows = make_windows([one.words for one in corpus], tokenizer, network.kind)
    answers = answer_texts(network, windows, watch=watch)
    return score_answers(network, corpus.examples, answers, seed=seed)


def score_answers(
    network: WordModel,
    examples: Sequence[WordExample],
    answers: Sequence[TextAnswers],
    *,
    seed: int = 0,
) -> WordScores:
    task = network.task
    if network.kind == "span":
        spans: list[Span | None] = [one.span for one in examples]
        return score_spans(task.name, spans, [one.span for one in answers], seed=seed)
    gold = [one.tags or () for one in examples]
    tags = [tags_of(one, task) for one in answers]
    return score_tags(task.name, task.labels, gold, tags, seed=seed)


def tags_of(answers: TextAnswers, task: Task) -> list[str]:
    """The most probable label of each word."""
    assert answers.probabilities is not None
    return [task.labels[number] for number in answers.probabilities.argmax(-1).tolist()]


def check_labels(corpus: WordCorpus, task: Task, kind: str) -> None:
    """Refuses texts whose labels the model does not know."""
    unknown = sorted(set(corpus.labels) - set(task.labels))
    if kind == "tagging" and unknown:
        raise UserError(
            f"{corpus.name} has labels that the model does not know: {', '.join(unknown)[:200]}."
            f" It knows {', '.join(task.labels)[:200]}."
        )
