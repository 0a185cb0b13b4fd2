"""Other texts out of given ones, without labels: for a teacher to answer and a student to imitate.

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

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random

from torch import Tensor
from torch.nn import functional

from reproduction.builtin_more_texts import dress

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
