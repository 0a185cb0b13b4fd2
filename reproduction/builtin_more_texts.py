"""More texts for the built-in model's students, made from those they learn from anyway.

rated     VADER's sentences that its twenty raters put near the middle, and the others by how far
          they put them from it, instead of by a label alone
passages  neighbouring sentences of one of VADER's reviews or editorials: longer, and mixed
posts     texts written for this project in a tweet's dress: names, hashtags, addresses
joined    two of those texts about one topic that feel the same: longer comments

All are learned as texts without labels, by their answers: of `rated` and `passages`

    p(positive) = σ(2 · mean rating)          ratings from −4 to 4

and of the other two what the text they are made from has for a label and as its teachers' answer,
half and half. None is made from a text, or shares a document, that is held out, reserved or a test.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from random import Random

from litotes.core.values import Example, Task
from litotes.data.corpus import Corpus, example_key, text_key
from litotes.data.near_duplicates import remove_texts_of
from litotes.data.sources import load
from litotes.data.sources.corpora import ratings
from litotes.training.distillation.plan import DistillPlan
from litotes.training.distillation.teachers import stated_shares
from litotes.training.lessons import Lessons

SLOPE = 2.0
WRITTEN = ("contrast", "asides")
"""The corpora written for this project."""
LENGTHS = (2, 3, 5)
"""Sentences of a passage."""
N_POSTS = 9000
N_JOINED = 5000
HANDLES = ("@user", "@user @user")
ADDRESSES = ("http", "https://t.co/")
POSITIVE, NEGATIVE = "positive", "negative"

Soft = dict[str, tuple[float, ...]]
"""{task: the probability of each class}"""
Rated = tuple[Example, float]
"""A sentence and its mean rating."""
Heard = Callable[[Sequence[Example]], Soft]
"""How sarcastic neighbouring sentences are, as an answer; none where that is not known."""


@dataclass(frozen=True)
class MadeText:
    """A text that was made, and what is to be answered to it. origin: what it begins with, where
    its group or source are asked for.
    """

    text: str
    answers: Soft
    origin: Example | None = None


def with_ratings(
    lessons: Lessons, plan: DistillPlan, rated: Sequence[Rated], heard: Heard | None = None
) -> Lessons:
    """The lessons, and what VADER's raters said: of sentences and of passages.

    heard: None: as the recipe states for their source.
    """
    heard = partial(stated_sarcasm, plan) if heard is None else heard
    sentiment = dict(lessons.answers["sentiment"])
    learned = {example_key(one) for one in plan.data.train}
    made = []
    for one, rating in rated:
        soft, key = by_rating(plan, rating), example_key(one)
        if key in learned:
            before = sentiment.get(key)
            sentiment[key] = soft if before is None else mean_answer([before, soft])
        else:
            made.append(MadeText(one.text, {"sentiment": soft} | heard([one])))
    made += passages(plan, rated, heard)
    answers = {**lessons.answers, "sentiment": sentiment}
    return _with_texts(replace(lessons, answers=answers), made)


def ours_and_older(examples: Iterable[Example]) -> tuple[list[Example], list[Example]]:
    """The texts that were written for this project, and the others."""
    written = {text_key(example.text) for name in WRITTEN for example in load(name)}
    ours, older = [], []
    for one in examples:
        (ours if text_key(one.text) in written else older).append(one)
    return ours, older


def with_dressed_texts(lessons: Lessons, plan: DistillPlan, examples: Sequence[Example]) -> Lessons:
    """The lessons, and these texts as posts and in pairs."""
    own = [one for one in examples if len(one.labels) > 1]
    random = Random(0)
    posts = [
        MadeText(dress(one.text, random), _answers_to(one, lessons, plan))
        for one in random.sample(own, min(N_POSTS, len(own)))
    ]
    return _with_texts(lessons, [*posts, *joined(own, lessons, plan, random)])


def with_repeats(
    lessons: Lessons, plan: DistillPlan, examples: Sequence[Example], *, n_copies: int
) -> Lessons:
    """The lessons, and these texts again, so many times."""
    made = []
    for one in examples:
        answers = _answers_to(one, lessons, plan)
        made += [MadeText(copy, answers) for copy in respell(one.text)[:n_copies]]
    return _with_texts(lessons, made)


def respell(text: str) -> tuple[str, str]:
    """The text twice, spelled so that it counts as another: its end with a blank before it (the
    same pieces), and without it or with a full stop.
    """
    body = text.rstrip(".!?")
    end = text[len(body) :]
    return (f"{body} {end}", body) if end and body else (f"{text} .", f"{text}.")


def dress(text: str, random: Random) -> str:
    """The text as a tweet might have it."""
    words = re.findall(r"[^\W\d_]{5,}", text)
    if random.random() < 0.5:
        text = text.rstrip(".")
    if random.random() < 0.4:
        text = f"{random.choice(HANDLES)} {text}"
    if words and random.random() < 0.6:
        tags = random.sample(words, min(len(words), random.choice((1, 1, 2, 3))))
        text = " ".join([text, *(f"#{tag.lower()}" for tag in tags)])
    if random.random() < 0.25:
        text = f"{text} {random.choice(ADDRESSES)}"
    return text


def passages(plan: DistillPlan, rated: Sequence[Rated], heard: Heard) -> list[MadeText]:
    """Neighbouring sentences of each document, by the mean of their ratings."""
    documents: dict[str, list[Rated]] = defaultdict(list)
    for one, rating in rated:
        documents[one.group or ""].append((one, rating))
    made = []
    for sentences in documents.values():
        for length in LENGTHS:
            for start in range(0, len(sentences) - length + 1, length):
                some = sentences[start : start + length]
                text = " ".join(one.text for one, _ in some)
                rating = sum(rating for _, rating in some) / length
                soft = {"sentiment": by_rating(plan, rating)} | heard([one for one, _ in some])
                made.append(MadeText(text, soft, origin=some[0][0]))
    return made


def joined(
    own: Sequence[Example], lessons: Lessons, plan: DistillPlan, random: Random
) -> list[MadeText]:
    """Two texts of a topic and kind with one sentiment; sarcastic if one of them is."""
    alike: dict[tuple[str | None, ...], list[Example]] = defaultdict(list)
    for one in own:
        alike[one.group, one.source, str(one.labels["sentiment"])].append(one)
    made = []
    for some in alike.values():
        random.shuffle(some)
        for first, second in zip(some[::2], some[1::2], strict=False):
            parts = [_answers_to(part, lessons, plan) for part in (first, second)]
            sarcastic = 1 - math.prod(1 - part["sarcasm"][1] for part in parts)
            sentiment = mean_answer([part["sentiment"] for part in parts])
            soft = {"sentiment": sentiment, "sarcasm": (1 - sarcastic, sarcastic)}
            made.append(MadeText(f"{first.text} {second.text}", soft))
    return random.sample(made, min(N_JOINED, len(made)))


def allowed_ratings(plan: DistillPlan, data: Path) -> list[Rated]:
    """VADER's sentences with their ratings, less all that may not be learned from."""
    parts = [part for part in (plan.data.held_out, plan.data.reserved, plan.data.test) if part]
    apart = [one for part in parts for one in part]
    keys, documents = set(map(example_key, apart)), {one.group for one in apart} - {None}
    found = ratings(data / "vader")
    corpus = Corpus("vader", tuple(one for one, _ in found), {})
    clean, _ = remove_texts_of(corpus, [load(source) for source in plan.recipe.data.avoid])
    left = {example_key(one) for one in clean} - keys
    return [
        (one, rating)
        for one, rating in found
        if example_key(one) in left and one.group not in documents
    ]


def by_rating(plan: DistillPlan, rating: float) -> tuple[float, ...]:
    positive = 1 / (1 + math.exp(-SLOPE * rating))
    by_label = {POSITIVE: positive, NEGATIVE: 1 - positive}
    return tuple(by_label[str(label)] for label in plan.data.train.tasks["sentiment"].labels)


def stated_sarcasm(plan: DistillPlan, sentences: Sequence[Example]) -> Soft:
    """Where the recipe states how frequent it is in texts of this source."""
    source = sentences[0].source or ""
    stated = plan.recipe.distill.prevalence.get(source, {}).get("sarcasm")
    if stated is None:
        return {}
    return {"sarcasm": stated_shares(plan.data.train.tasks["sarcasm"], stated)}


def _answers_to(example: Example, lessons: Lessons, plan: DistillPlan) -> Soft:
    """Label and teachers' answer, half and half; of a text without such a label its answer."""
    found = {}
    for name, task in plan.data.train.tasks.items():
        answer = lessons.answers.get(name, {}).get(example_key(example))
        known = [] if answer is None else [answer]
        if name in example.labels:
            known.append(_certain(task, str(example.labels[name])))
        if known:
            found[name] = mean_answer(known)
    return found


def _certain(task: Task, label: str) -> tuple[float, ...]:
    return tuple(float(one == label) for one in task.labels)


def mean_answer(several: Sequence[tuple[float, ...]]) -> tuple[float, ...]:
    return tuple(sum(column) / len(several) for column in zip(*several, strict=True))


def _with_texts(lessons: Lessons, made: Sequence[MadeText]) -> Lessons:
    """A text that has answers already is left as it is."""
    answers = {task: dict(by_text) for task, by_text in lessons.answers.items()}
    known = {key for by_text in answers.values() for key in by_text}
    examples = []
    for one in made:
        example = Example(one.text, {}, split="train")
        key = example_key(example)
        if key in known:
            continue
        known.add(key)
        examples.append(example)
        for task, soft in one.answers.items():
            answers[task][key] = soft
    return replace(lessons, answers=answers, unlabelled=(*lessons.unlabelled, *examples))
