"""The texts that students of the built-in model learn from, and what is to be answered to them.

    OUT/texts.jsonl.gz    a row for each text: what it is, its fold, how positive and how sarcastic
                          it is by labels, raters and readers (null: not known)

own       texts written for this project, by their labels; without sentiment: one half
older     VADER's sentences, by σ(2 · mean rating) and by readers (`readings`), and iSarcasmEval's
          tweets, half by label and half by readers
passage   neighbouring sentences of VADER's
variant   other texts made of the first two: only teachers answer them
asked     texts to choose by and test texts: answered by all, learned from by none

A student that sees a teacher's answers to a few thousand texts knows the teacher there and nowhere
else. Around each text lie many that nobody has written, and a teacher answers them all (Jiao et al.
2020, arXiv 1909.10351, §3.3; Tang et al. 2019, arXiv 1903.12136, §3.2):

swapped   some words replaced by neighbours of theirs, antonyms among them
cut       a run of its clauses
joined    with one to three others of its kind: longer and mixed
spliced   its beginning and another's end
dressed   as it might be posted: names, hashtags, addresses, no capitals, no full stop
thinned   without some of its words

Neighbours are the nearest words by the cosine of their vectors.
"""

from __future__ import annotations

import gzip
import json
import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from random import Random

import torch
from torch import Tensor
from torch.nn import functional

from litotes.core.values import Example
from litotes.data.corpus import Corpus, example_key, text_key
from litotes.data.near_duplicates import assign_folds, remove_texts_of
from litotes.data.sources import load
from litotes.data.sources.corpora import ratings
from litotes.data.tables import read_rows
from litotes.encoder import pretrained
from litotes.encoder.encoder import Encoder
from litotes.encoder.packing import batches_by_budget, encode_examples, pack
from litotes.encoder.tokenizer import PieceTokenizer
from litotes.training.distillation.plan import DistillPlan, DistillRecipe, plan_distillation
from litotes.training.distillation.teachers import (
    with_even_answers,
)
from litotes.training.training_data import prepare

RECIPE = Path(__file__).parents[2] / "recipes" / "distill_builtin.toml"
SOURCE = "vader:{0}/vader + isarcasm:{0}/isarcasmeval2022 + sampler + contrast + asides"
AVOID = ("glue/sst2:{0}/glue", "besstie:{0}/besstie", "irony:{0}/tweeteval-irony")
PRAISE = "contrast, sarcastic praise"
"""Of these texts only those that are not meant."""
TESTS = {
    "vader": "vader:{0}/vader",
    "isarcasm": "isarcasm:{0}/isarcasmeval2022",
    "contrast": "contrast",
    "contrast, plain": "contrast?kind=plain",
    "contrast, litotes and negation": "contrast?kind=litotes+negation",
    PRAISE: "contrast?kind=praise+thanks",
    "asides": "asides",
    "besstie": "besstie:{0}/besstie",
    "irony": "irony:{0}/tweeteval-irony",
    "sst2": "glue/sst2:{0}/glue",
}
KEPT_APART = {"other comments": "besstie:{0}/besstie", "other tweets": "irony:{0}/tweeteval-irony"}
"""Not learned from, only chosen by: all but their test texts."""
N_KEPT_APART = 6000


def make_plan(data: Path, out: Path, teacher: str) -> DistillPlan:
    avoid = [source.format(data) for source in AVOID]
    changes = [
        f"data.source={SOURCE.format(data)}",
        f"data.avoid={avoid}".replace("'", '"'),
        f"distill.teacher.model.encoder={teacher}",
        f"distill.teachers_folder={out / 'teachers'}",
        "training.reserved=0.1",
    ]
    return plan_distillation(DistillRecipe.read(RECIPE, changes=changes), out / "student")


def kept_apart(data: Path, plan: DistillPlan, n_most: int = N_KEPT_APART) -> dict[str, Corpus]:
    """Texts to choose by; n_most: of each other kind."""
    if plan.data.reserved is None:
        raise ValueError("the recipe reserves no texts to choose by")
    found = {"reserved": plan.data.reserved}
    for name, source in KEPT_APART.items():
        whole = load(source.format(data))
        test = {text_key(one.text) for one in whole.where(split=whole.test_split())}
        own = whole.where(split=[one for one in whole.splits() if one != whole.test_split()])
        examples = tuple(one for one in own if text_key(one.text) not in test)
        found[name] = draw_texts(replace(own, examples=examples), n_most)
    return found


def draw_texts(corpus: Corpus, n_most: int) -> Corpus:
    """At most so many, at random, always the same."""
    examples = list(corpus.examples)
    Random(0).shuffle(examples)
    return replace(corpus, examples=tuple(examples[:n_most]))


def load_tests(data: Path) -> dict[str, Corpus]:
    corpora = {}
    for name, source in TESTS.items():
        whole = load(source.format(data))
        corpora[name] = whole.where(split=whole.test_split())
    return corpora


SLOPE = 2.0
WRITTEN = ("contrast", "asides")
"""The corpora written for this project."""
LENGTHS = (2, 3, 5)
"""Sentences of a passage."""
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


def ours_and_older(examples: Iterable[Example]) -> tuple[list[Example], list[Example]]:
    """The texts that were written for this project, and the others."""
    written = {text_key(example.text) for name in WRITTEN for example in load(name)}
    ours, older = [], []
    for one in examples:
        (ours if text_key(one.text) in written else older).append(one)
    return ours, older


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


FOLDER = Path(__file__).parent / "readings"
FILES = {
    "tweets": "vader",
    "film reviews": "vader",
    "product reviews": "vader",
    "editorials": "vader",
    "iSarcasm": "isarcasm",
}
"""By the source that a text names."""
PLAIN = 0.02
"""Of a text that is not listed."""
N_DIGITS = 10


def reading_of(example: Example) -> float | None:
    """How probable it is that a reader calls the text sarcastic; None: it was not read."""
    name = FILES.get(example.source or "")
    if name is None:
        return None
    key = sha256(text_key(example.text).encode()).hexdigest()[:N_DIGITS]
    return _readings(name).get(key, PLAIN)


@cache
def _readings(name: str) -> dict[str, float]:
    rows = read_rows(FOLDER / f"{name}.csv", needs=("text", "percent"))
    return {row.require_word("text"): row.as_number("percent") / 100 for row in rows}


def heard_in(sentences: Sequence[Example]) -> Soft:
    """How sarcastic readers find the most sarcastic of neighbouring sentences; nothing of texts
    that were not read.
    """
    readings = [reading_of(one) for one in sentences]
    known = [one for one in readings if one is not None]
    return {"sarcasm": (1 - max(known), max(known))} if known else {}


LATER = re.compile(r"-[89]\d{3}[a-z]?$")
"""How the pairs of the texts end that `contrast` got after texts had been kept apart."""


def as_shipped(plan: DistillPlan) -> DistillPlan:
    """The plan with the texts that the shipped model learned from and kept apart: later texts of
    `contrast` are learned from where their topics were, and keep nothing else apart.
    """
    later, whole = later_texts(), plan.data.whole
    before = replace(whole, examples=tuple(one for one in whole if one.text not in later))
    data = prepare(plan.recipe.student, before)
    apart = {one.group for part in (data.held_out, data.reserved) if part for one in part}
    more = [
        one
        for one in whole
        if one.text in later and one.split == "train" and one.group not in apart
    ]
    train = replace(data.train, examples=(*data.train.examples, *more))
    return replace(plan, data=replace(data, train=train))


def later_texts() -> set[str]:
    found = set()
    for file in (files("litotes.data") / "contrast").iterdir():
        if file.name.endswith(".jsonl"):
            rows = map(json.loads, file.read_text("utf-8").splitlines())
            found |= {row["text"] for row in rows if LATER.search(row.get("pair") or "")}
    return found


N_NEIGHBOURS = 8
LEAST_LIKENESS = 0.45
RATES = (0.1, 0.2, 0.35)
"""Shares of words that are swapped."""
THINNED = 0.15
MOST_WORDS = 110
N_FREQUENT = 80
"""Words that are not swapped, but for these."""
NEGATIONS = {"not", "no", "never", "love", "good", "great"}
WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?")
CLAUSE = re.compile(r"(?<=[.!?;:,–—])\s+|\s+(?=(?:and|but|because|so|though|while|when)\s)")
Neighbours = Mapping[str, Sequence[str]]


@dataclass(frozen=True)
class Base:
    """A text to make others from. kind, fold: of the texts it may be joined with. source: what a
    variant's is, too.
    """

    text: str
    kind: str
    fold: int
    source: str | None = None


def find_neighbours(words: Sequence[str], vectors: Tensor) -> dict[str, list[str]]:
    """The nearest words of each, either way round. vectors: (word, width)"""
    vectors = functional.normalize(vectors.float(), dim=-1)
    found: dict[str, list[str]] = defaultdict(list)
    for start in range(0, len(words), 1024):
        likeness = vectors[start : start + 1024] @ vectors.T  # (word, word)
        values, places = likeness.topk(min(N_NEIGHBOURS + 1, len(words)))
        for number, (some, near) in enumerate(zip(values.tolist(), places.tolist(), strict=True)):
            word = words[start + number]
            for value, place in zip(some, near, strict=True):
                if value >= LEAST_LIKENESS and words[place] != word:
                    found[word].append(words[place])
                    found[words[place]].append(word)
    return {word: list(dict.fromkeys(near)) for word, near in found.items()}


def make_variants(
    bases: Sequence[Base], neighbours: Neighbours, *, n_each: int, seed: int
) -> list[Base]:
    """So many others of each text, each once; of joined and spliced ones all parts share a fold."""
    random = Random(seed)
    alike: dict[tuple[str, int], list[str]] = defaultdict(list)
    for base in bases:
        alike[base.kind, base.fold].append(base.text)
    neighbours = _without_frequent(neighbours, bases)
    known = {base.text for base in bases}
    made = []
    for base in bases:
        others = alike[base.kind, base.fold]
        for number in range(n_each):
            change = CHANGES[number % len(CHANGES)]
            text = change(base.text, others, neighbours, random)
            if len(text) > 1 and text not in known:
                known.add(text)
                made.append(replace(base, text=text))
    return made


def _without_frequent(neighbours: Neighbours, bases: Sequence[Base]) -> Neighbours:
    """What holds sentences together stays."""
    counts = Counter(word.lower() for base in bases for word in WORD.findall(base.text))
    frequent = {word for word, _ in counts.most_common(N_FREQUENT)} - NEGATIONS
    return {word: near for word, near in neighbours.items() if word not in frequent}


def swap(text: str, others: Sequence[str], neighbours: Neighbours, random: Random) -> str:
    rate = random.choice(RATES)

    def other_word(match: re.Match[str]) -> str:
        near = neighbours.get(match[0].lower())
        if near is None or random.random() >= rate:
            return match[0]
        word = random.choice(near)
        return word.capitalize() if match[0][0].isupper() else word

    return WORD.sub(other_word, text)


def cut(text: str, others: Sequence[str], neighbours: Neighbours, random: Random) -> str:
    clauses = CLAUSE.split(text)
    if len(clauses) < 2:
        return swap(text, others, neighbours, random)
    length = random.randint(1, len(clauses) - 1)
    start = random.randint(0, len(clauses) - length)
    return " ".join(clauses[start : start + length]).strip(" ,;:–—")


def join(text: str, others: Sequence[str], neighbours: Neighbours, random: Random) -> str:
    parts = [text, *random.choices(others, k=random.choice((1, 1, 2, 3)))]
    random.shuffle(parts)
    whole = " ".join(parts)
    if random.random() < 0.5:
        whole = swap(whole, others, neighbours, random)
    return " ".join(whole.split()[:MOST_WORDS])


def splice(text: str, others: Sequence[str], neighbours: Neighbours, random: Random) -> str:
    begin, end = CLAUSE.split(text), CLAUSE.split(random.choice(others))
    first = begin[: max(1, random.randint(1, len(begin)))]
    last = end[min(len(end) - 1, random.randint(0, len(end) - 1)) :]
    return " ".join([*first, *last])


def dress_up(text: str, others: Sequence[str], neighbours: Neighbours, random: Random) -> str:
    text = dress(swap(text, others, neighbours, random), random)
    return text.lower() if random.random() < 0.3 else text


def thin(text: str, others: Sequence[str], neighbours: Neighbours, random: Random) -> str:
    words = text.split()
    kept = [word for word in words if random.random() >= THINNED]
    return " ".join(kept) if len(kept) < len(words) else swap(text, others, neighbours, random)


Change = Callable[[str, Sequence[str], Neighbours, Random], str]
CHANGES: tuple[Change, ...] = (swap, join, cut, swap, splice, dress_up, swap, thin)
"""In turns."""
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


RESERVED = "reserved"


def texts_of_none(data: Path, plan: DistillPlan, n_most: int = N_KEPT_APART) -> dict[str, Corpus]:
    """Texts that no part has learned from. n_most: of each other kind."""
    sets = kept_apart(data, plan, n_most)
    ours, _ = ours_and_older(sets[RESERVED])
    return sets | {RESERVED: replace(sets[RESERVED], examples=tuple(ours))}
