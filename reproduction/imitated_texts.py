"""The texts that students of `builtin_variants` learn from, and what is to be answered to them.

    OUT/texts.jsonl.gz    a row for each text: what it is, its fold, how positive and how sarcastic
                          it is by labels, raters and readers (null: not known)

own       texts written for this project, by their labels; without sentiment: one half
older     VADER's sentences, by σ(2 · mean rating) and by readers (`sarcasm_readings`), and
          iSarcasmEval's tweets, half by label and half by readers
passage   neighbouring sentences of VADER's (`builtin_more_texts`)
variant   other texts made of the first two (`text_variants`): only teachers answer them
asked     texts to choose by and test texts: answered by all, learned from by none
"""

from __future__ import annotations

import gzip
import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from torch import Tensor

from litotes.core.values import Example
from litotes.data.corpus import example_key
from litotes.data.near_duplicates import assign_folds
from litotes.encoder import pretrained
from litotes.encoder.encoder import Encoder
from litotes.encoder.packing import batches_by_budget, encode_examples, pack
from litotes.encoder.tokenizer import PieceTokenizer
from litotes.training.distillation.plan import DistillPlan
from litotes.training.distillation.teachers import with_even_answers
from reproduction.builtin_mixture import texts_of_none
from reproduction.builtin_more_texts import (
    POSITIVE,
    allowed_ratings,
    by_rating,
    ours_and_older,
    passages,
)
from reproduction.builtin_students import load_tests
from reproduction.builtin_with_readings import heard_in
from reproduction.sarcasm_readings import reading_of
from reproduction.text_variants import Base, find_neighbours, make_variants

N_FOLDS = 5
N_EACH = 8
"""Variants of a text."""
OWN, OLDER, PASSAGE, VARIANT, ASKED = "own", "older", "passage", "variant", "asked"
PIECE_WORD = re.compile(r"[a-z]{3,}")


@dataclass(frozen=True)
class Row:
    """A text; older: whether it is one of those, or made of one, and source: whose."""

    text: str
    kind: str
    older: bool
    fold: int
    source: str | None = None
    sentiment: float | None = None
    sarcasm: float | None = None


def write_texts(plan: DistillPlan, data: Path, file: Path, *, teacher: str) -> None:
    learned = learned_rows(plan, data)
    bases = [
        Base(row.text, OLDER if row.older else OWN, row.fold, row.source)
        for row in learned
        if row.kind != PASSAGE
    ]
    neighbours = _neighbours([base.text for base in bases], teacher)
    kept = asked_texts(plan, data)
    apart = {example_key(one) for one in kept}
    variants = [
        Row(base.text, VARIANT, base.kind == OLDER, base.fold, base.source)
        for base in make_variants(bases, neighbours, n_each=N_EACH, seed=0)
        if example_key(Example(base.text, {})) not in apart
    ]
    asked = [Row(one.text, ASKED, older=False, fold=-1) for one in kept]
    file.parent.mkdir(parents=True, exist_ok=True)
    with gzip.open(file, "wt", encoding="utf-8", compresslevel=9) as stream:
        for row in (*learned, *variants, *asked):
            stream.write(json.dumps(asdict(row), ensure_ascii=False) + "\n")


def read_texts(file: Path) -> list[Row]:
    with gzip.open(file, "rt", encoding="utf-8") as stream:
        return [Row(**json.loads(line)) for line in stream]


def asked_texts(plan: DistillPlan, data: Path) -> list[Example]:
    """Each once."""
    sets = texts_of_none(data, plan) | load_tests(data)
    parts = [*sets.values(), *([plan.data.held_out] if plan.data.held_out else [])]
    return list({example_key(one): one for part in parts for one in part}.values())


def learned_rows(plan: DistillPlan, data: Path) -> list[Row]:
    """Texts with something to be answered."""
    rated = allowed_ratings(plan, data)
    ratings = {example_key(one): rating for one, rating in rated}
    ours, older = ours_and_older(plan.data.train)
    known = set(map(example_key, older))
    middle = [one for one, _ in rated if example_key(one) not in known]
    examples = [*ours, *older, *middle]
    folds = assign_folds(examples, n_folds=N_FOLDS, seed=0).train
    neutral = with_even_answers({}, plan).get("sentiment", {})
    positive = plan.data.train.tasks["sentiment"].labels.index(POSITIVE)
    rows = []
    for number, (one, fold) in enumerate(zip(examples, folds, strict=True)):
        is_older = number >= len(ours)
        sentiment = None
        if example_key(one) in neutral:
            sentiment = 0.5
        elif example_key(one) in ratings:
            sentiment = by_rating(plan, ratings[example_key(one)])[positive]
        elif "sentiment" in one.labels:
            sentiment = float(one.labels["sentiment"] == POSITIVE)
        kind = OLDER if is_older else OWN
        rows.append(Row(one.text, kind, is_older, fold, one.source, sentiment, _sarcasm_of(one)))
    fold_of = {one.group: fold for one, fold in zip(examples, folds, strict=True) if one.group}
    for made in passages(plan, rated, heard_in):
        assert made.origin is not None
        fold, source = fold_of.get(made.origin.group, 0), made.origin.source
        sentiment = made.answers["sentiment"][positive]
        sarcasm = made.answers["sarcasm"][1] if "sarcasm" in made.answers else None
        rows.append(Row(made.text, PASSAGE, True, fold, source, sentiment, sarcasm))
    return rows


def _sarcasm_of(one: Example) -> float | None:
    known = [reading_of(one)]
    if "sarcasm" in one.labels:
        known.append(float(one.labels["sarcasm"] == "sarcastic"))
    found = [value for value in known if value is not None]
    return sum(found) / len(found) if found else None


def _neighbours(texts: Iterable[str], teacher: str) -> dict[str, list[str]]:
    """By the teacher's encoder, a word at a time, and by its table of pieces."""
    source = pretrained.load(teacher)
    counts = Counter(word for text in texts for word in re.findall(r"[a-z]{3,}", text.lower()))
    written = map(source.tokenizer.piece_string, range(source.tokenizer.n_vocabulary))
    vocabulary = {word: number for number, word in enumerate(written) if word is not None}
    pieces = [word for word in vocabulary if PIECE_WORD.fullmatch(word)]
    words = sorted({word for word, n in counts.items() if n > 1} | set(pieces))
    by_meaning = find_neighbours(words, word_vectors(words, source.encoder, source.tokenizer))
    table = source.encoder.embeddings.piece.weight.detach()
    by_piece = find_neighbours(pieces, table[[vocabulary[word] for word in pieces]])
    return {
        word: list(dict.fromkeys([*by_piece.get(word, ()), *by_meaning.get(word, ())]))
        for word in by_meaning.keys() | by_piece.keys()
    }


def word_vectors(words: Sequence[str], encoder: Encoder, tokenizer: PieceTokenizer) -> Tensor:
    """The mean over each word's pieces. (word, width)"""
    pieces = encode_examples(tokenizer, [Example(word, {}) for word in words])
    means = []
    with torch.inference_mode():
        for places in batches_by_budget([len(one.ids) for one in pieces], max_texts=512):
            batch = pack([pieces[place] for place in places])
            hidden = encoder(batch).hidden  # (piece, width)
            means += [part.mean(0) for part in hidden.split(list(batch.layout.lengths))]
    return torch.stack(means)
