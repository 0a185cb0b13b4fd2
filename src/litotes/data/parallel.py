"""Texts side by side: what is said in one way, and in another. The table of their sources.

NAME:PATH[?key=value&key=value]
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path

from litotes.core.errors import UserError
from litotes.core.json_text import to_json
from litotes.core.text import one_line
from litotes.data.corpus import text_key
from litotes.data.sources.source import choice, expand_path, number, read_source, sources_of
from litotes.data.tables.files import find_file, find_files, text_lines


@dataclass(frozen=True)
class Pair:
    """A text, and what it is to become; several where several people were asked."""

    source: str
    targets: tuple[str, ...]

    @property
    def key(self) -> str:
        """The key that equal source texts share."""
        return text_key(self.source)


@dataclass(frozen=True)
class ParallelTexts:
    """Pairs to learn from, to watch the training by, and to test on."""

    name: str
    train: tuple[Pair, ...]
    valid: tuple[Pair, ...]
    test: tuple[Pair, ...]
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        sizes = {"train": len(self.train), "valid": len(self.valid), "test": len(self.test)}
        return one_line(self, name=self.name, **sizes)

    def fingerprint(self) -> str:
        """A hash of all texts."""
        digest = sha256()
        for part in (self.train, self.valid, self.test):
            texts = [[pair.source, *pair.targets] for pair in part]
            digest.update(to_json(texts).encode())
        return digest.hexdigest()


def load_parallel(spec: str) -> ParallelTexts:
    """The parallel texts a user names, such as `multi30k:data/multi30k?from=de&to=en`."""
    texts = read_source(spec, PARALLEL, "source of parallel texts")
    if not texts.train:
        raise UserError(f"{spec} holds no pair of texts to learn from.")
    return texts


def lines_of(file: Path) -> Iterator[str]:
    """The lines of a text file, packed by gzip or not, one at a time."""
    return (line for _, line in text_lines(file))


def pair_lines(sources: Iterable[str], targets: Iterable[str], where: str) -> list[Pair]:
    """Line by line; pairs one side of which is empty are left out."""
    sources, targets = list(sources), list(targets)
    if len(sources) != len(targets):
        raise UserError(
            f"{where}: {len(sources)} lines on one side and {len(targets)} on the other. Both files"
            " need the same lines in the same order."
        )
    pairs = []
    for source, target in zip(sources, targets, strict=True):
        if source.strip() and target.strip():
            pairs.append(Pair(source.strip(), (target.strip(),)))
    return pairs


def divide(name: str, pairs: Sequence[Pair], options: Mapping[str, str]) -> ParallelTexts:
    """Pairs without parts, in three parts that share no source text; the same ones every time."""
    valid, test = number(options, "valid", 0.05), number(options, "test", 0.05)
    if valid + test >= 1:
        raise UserError(f"valid={valid:g} and test={test:g} leave nothing to learn from.")
    keys = sorted({pair.key for pair in pairs})
    random.Random(0).shuffle(keys)
    n_valid, n_test = round(valid * len(keys)), round(test * len(keys))
    part_of = dict.fromkeys(keys[:n_valid], "valid")
    part_of |= dict.fromkeys(keys[n_valid : n_valid + n_test], "test")
    parts: dict[str, list[Pair]] = {"train": [], "valid": [], "test": []}
    for pair in pairs:
        parts[part_of.get(pair.key, "train")].append(pair)
    train, watched, tested = (tuple(part) for part in parts.values())
    return ParallelTexts(name, train, watched, tested)


def _read_multi30k(folder: Path, options: Mapping[str, str]) -> ParallelTexts:
    """Captions of Flickr's photographs (Elliott et al. 2016, arXiv 1605.00459)."""
    languages = choice(options, "from", ("de", "en")), choice(options, "to", ("en", "de"))
    if languages[0] == languages[1]:
        raise UserError("multi30k: from and to are the same language. Write from=de&to=en.")
    parts = []
    for part in ("train", "val", "test_2016_flickr"):
        source, target = (lines_of(_find(folder, f"{part}.{one}")) for one in languages)
        parts.append(tuple(pair_lines(source, target, where=f"{folder}, {part}")))
    train, valid, test = parts
    name = f"multi30k {languages[0]} to {languages[1]}"
    return _without_leaks(ParallelTexts(name, train, valid, test))


# Sarcasm SIGN, sarcastic tweets and what people say was meant: a tweet, a comma and an
# interpretation by one person a line, five lines a tweet or more. The files divide lines, not
# tweets: a tweet can be in two of them. Read for both of its uses, as words (`words.py`) and as
# pairs, so that both know the same tweets. Peled and Reichart 2017, arXiv 1704.06836.
PARTS = {"train": "train.csv", "dev": "dev.csv", "test": "test.csv"}


@dataclass(frozen=True)
class Interpreted:
    """One person's reading of a tweet. part: of `PARTS`."""

    part: str
    tweet: str
    meant: str

    @property
    def key(self) -> str:
        """The key that equal tweets share."""
        return text_key(self.tweet)


def read_interpretations(folder: Path) -> Iterator[Interpreted]:
    """Line by line. meant: empty where the person wrote nothing."""
    if not folder.is_dir():
        raise UserError(f"{folder} is not a folder: give the one that holds train.csv.gz.")
    for part, file in find_files(folder, PARTS).items():
        for place, line in text_lines(file):
            # tweets hold no comma: the first one ends them; few lines lack the blank after it
            tweet, comma, meant = line.partition(",")
            if not comma or not tweet.strip():
                raise UserError(f"{place}: a tweet, a comma and its interpretation are expected.")
            yield Interpreted(part, tweet.strip(), meant.strip())


def note_silent(n_silent: int) -> tuple[str, ...]:
    """The note for lines without an interpretation."""
    return (f"{n_silent} lines without an interpretation were left out.",) if n_silent else ()


def _read_sign(folder: Path, options: Mapping[str, str]) -> ParallelTexts:
    """Sarcastic tweets and what five people say was meant (Peled and Reichart 2017, arXiv
    1704.06836).

    The files divide pairs; a tweet's interpretations are gathered here, and a tweet that two files
    hold stays in the later one.
    """
    said: dict[str, dict[str, list[str]]] = {part: {} for part in PARTS}
    written: dict[str, str] = {}
    n_silent = 0
    for one in read_interpretations(folder):
        if one.meant:
            written.setdefault(one.key, one.tweet)
            said[one.part].setdefault(one.key, []).append(one.meant)
        else:
            n_silent += 1
    train, valid, test = (
        tuple(Pair(written[key], tuple(meant)) for key, meant in part.items())
        for part in said.values()
    )
    if choice(options, "plain", ("no", "yes")) == "yes":
        train += _as_they_are(train)
    return _without_leaks(ParallelTexts("sign", train, valid, test, note_silent(n_silent)))


def _as_they_are(pairs: Sequence[Pair]) -> tuple[Pair, ...]:
    """Pairs what people say was meant with itself, unless it is itself a tweet."""
    tweets = {pair.key for pair in pairs}
    meant = {text_key(target): target for pair in pairs for target in pair.targets}
    return tuple(Pair(text, (text,)) for key, text in meant.items() if key not in tweets)


def _read_tsv(file: Path, options: Mapping[str, str]) -> ParallelTexts:
    pairs = []
    for place, line in text_lines(file):
        cells = line.split("\t")
        if len(cells) != 2:
            raise UserError(
                f"{place}: {len(cells)} columns. Each line is a text, a tab and the text it is to"
                " become."
            )
        pairs += pair_lines(cells[:1], cells[1:], where=str(file))
    return divide(file.name, pairs, options)


def _read_two_files(file: Path, options: Mapping[str, str]) -> ParallelTexts:
    if "to" not in options:
        raise UserError("lines needs a second file: write lines:FILE?to=FILE.")
    other = expand_path(options["to"])
    pairs = pair_lines(lines_of(file), lines_of(other), where=f"{file} and {other}")
    return divide(file.name, pairs, options)


def _find(folder: Path, name: str) -> Path:
    if not folder.is_dir():
        raise UserError(f"{folder} is not a folder: give the one that holds {name} (or {name}.gz).")
    return find_file(folder, name)


def _without_leaks(texts: ParallelTexts) -> ParallelTexts:
    """Nothing is learned from or chosen by that is tested on."""
    later: set[str] = set()
    kept: list[tuple[Pair, ...]] = []
    n_dropped = 0
    for part in (texts.test, texts.valid, texts.train):
        new = tuple(pair for pair in part if pair.key not in later)
        n_dropped += len(part) - len(new)
        later |= {pair.key for pair in part}
        kept.append(new)
    test, valid, train = kept
    note = f"{n_dropped} pairs whose source text also sits in a later part were left out."
    notes = (*texts.notes, note) if n_dropped else texts.notes
    return replace(texts, train=train, valid=valid, test=test, notes=notes)


PARALLEL = sources_of(
    "parallel",
    {"multi30k": _read_multi30k, "sign": _read_sign, "tsv": _read_tsv, "lines": _read_two_files},
)
