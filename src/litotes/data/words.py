"""Texts given as words, with a label for every word, a stretch of words to find, or both.

Sources are named NAME:PATH[?key=value&key=value], as `litotes list sources` shows them.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from hashlib import sha256
from itertools import chain, groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

from litotes.core.errors import UserError
from litotes.core.json_text import from_json
from litotes.core.registry import can_name_task, pick
from litotes.core.text import is_utf8, one_line
from litotes.data.corpus import SPLIT_WORDS, fraction, split_by_hash, text_key
from litotes.data.parallel import note_silent, read_interpretations
from litotes.data.sources.source import choice, number, read_source, sources_of
from litotes.data.tables.files import find_files, require_file, text_lines

Span = tuple[int, int]
"""The first word of a stretch, and the word after its last."""


@dataclass(frozen=True)
class WordExample:
    """One text as words.

    tags: a label for each word; None: they are not known. has_span: whether it is known which
    stretch is to be found; span: the stretch, None where there is none in this text.
    """

    words: tuple[str, ...]
    tags: tuple[str, ...] | None = None
    has_span: bool = False
    span: Span | None = None
    split: str = "train"

    @property
    def text(self) -> str:
        """The text that a model reads: the words with a blank between them."""
        return " ".join(self.words)

    @property
    def key(self) -> str:
        """The key that equal texts share."""
        return text_key(self.text)


@dataclass(frozen=True)
class WordCorpus:
    """Texts of words for one task.

    labels: those that a word may have, in order. cutting: how a text that is not cut into words
    yet has to be cut to look like these (`CUTTINGS`). notes: sentences the user should read.
    """

    name: str
    task: str
    labels: tuple[str, ...]
    examples: tuple[WordExample, ...]
    cutting: str = "treebank"
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.examples)

    def __iter__(self) -> Iterator[WordExample]:
        return iter(self.examples)

    def __repr__(self) -> str:
        return one_line(self, name=self.name, task=self.task, n_texts=len(self))

    def only(self, split: str) -> WordCorpus:
        return self._with([one for one in self if one.split == split])

    def splits(self) -> tuple[str, ...]:
        return tuple(sorted({one.split for one in self}))

    def for_kind(self, kind: str) -> WordCorpus:
        """The texts that can teach or test a model of this kind, tagging or span."""
        is_span = kind == "span"
        chosen = [one for one in self if (one.has_span if is_span else one.tags is not None)]
        if not chosen:
            raise UserError(
                f'{self.name} has no {"spans" if is_span else "tags"}: kind = "{kind}" cannot be'
                " trained or tested on it."
            )
        return self._with(chosen)

    def hold_out(self, share: float, *, seed: int) -> tuple[WordCorpus, WordCorpus]:
        """The texts in two parts, the second about `share` of them; equal texts stay together."""
        kept: list[WordExample] = []
        held: list[WordExample] = []
        for one in self:
            (held if fraction(f"{seed} {one.key}") < share else kept).append(one)
        if not kept or not held:
            raise UserError(
                f"{self.name} has too few texts to hold {share:g} of them out: set"
                " training.held_out = 0, or give more texts."
            )
        return self._with(kept), self._with(held)

    def without_leaks(self) -> tuple[WordCorpus, int]:
        """Drops training texts that also sit in another split, and counts them."""
        others = {one.key for one in self if one.split != "train"}
        kept = [one for one in self if one.split != "train" or one.key not in others]
        return self._with(kept), len(self) - len(kept)

    def fingerprint(self) -> str:
        """A hash of all words and answers."""
        digest = sha256()
        for one in self:
            content = (one.words, one.tags, one.has_span, one.span, one.split)
            digest.update(json.dumps(content).encode())
        return digest.hexdigest()

    def _with(self, examples: Sequence[WordExample]) -> WordCorpus:
        return replace(self, examples=tuple(examples))


def labels_of(examples: Sequence[WordExample]) -> tuple[str, ...]:
    """All labels that occur, in the order of the alphabet; O, which marks nothing, comes first."""
    found = {tag for one in examples for tag in one.tags or ()}
    return tuple(sorted(found, key=lambda label: (label != OUTSIDE, label)))


def check_words(words: Sequence[str], place: str) -> tuple[str, ...]:
    """Words that can be told apart when a blank stands between them."""
    if not words:
        raise UserError(f"{place}: there are no words. Take the text out.")
    for word in words:
        if not word or any(sign.isspace() for sign in word):
            raise UserError(
                f"{place}: {word!r:.60} is not one word. Words must not be empty or hold blanks."
            )
        if not is_utf8(word):
            raise UserError(f"{place}: {word!r:.60} holds half a character. Save it as UTF-8.")
    return tuple(words)


def check_tags(tags: Sequence[str], place: str) -> tuple[str, ...]:
    """Labels that a model may answer: they are printed, and a terminal obeys some characters."""
    for tag in tags:
        if not tag or not tag.isprintable():
            raise UserError(f"{place}: the tag {tag!r:.60} cannot be printed. Name it otherwise.")
    return tuple(tags)


# what comes before an @ or an ending is looked for in so many signs at most: without a limit every
# word of a long text would be searched to its end
_ADDRESS = r"https?://\S+|www\.\S+|\S{1,64}@\w[\w.-]{0,252}\.\w+|[@#]\w+"
_FACE = r"[:;=]['’]?-?[()DPp|/](?!\w)"
_FILE = r"[\w-]{1,64}(?:\.[\w-]{1,64}){0,8}\.(?:com|org|net|edu|gov|pdf|html?|docx?|xlsx?)\b"
_NUMBER = r"\d+(?:[.,:/]\d+)+"
_SHORT_FORM = r"(?:[A-Za-z]\.){2,}|(?:Mr|Mrs|Ms|Dr|St|Jr|Sr|vs|etc)\.(?=\s|$)"
_WORD = r"[^\W_]+(?:['’][^\W_]+)*['’]?(?<!['’])|[^\W_]+"
_SIGNS = r"([^\w\s])\1+|\S"
_TOKEN = re.compile(
    "|".join((_ADDRESS, _FACE, _FILE, _SHORT_FORM, _NUMBER, _WORD, _SIGNS)), re.IGNORECASE
)
_CONTRACTION = re.compile(r"(.+?)(n['’]t|['’](?:s|re|ve|ll|d|m))", re.IGNORECASE)
_JOINED = {"cannot": 3, "gonna": 3, "wanna": 3, "gotta": 3}
"""Words that a treebank writes as two, and where the second begins."""


@dataclass(frozen=True)
class CutWord:
    """A word and where it stands in its text."""

    written: str
    start: int
    end: int


def cut_text(text: str, way: str) -> tuple[CutWord, ...]:
    """Cuts a text into words, none of them empty. way: a name of `CUTTINGS`."""
    return pick(CUTTINGS, way, "way to cut texts into words called")(text)


def at_blanks(text: str) -> tuple[CutWord, ...]:
    return tuple(CutWord(found[0], *found.span()) for found in re.finditer(r"\S+", text))


def at_signs(text: str) -> tuple[CutWord, ...]:
    """Signs are words of their own, contractions stay whole: what ? i'm."""
    return tuple(CutWord(found[0], *found.span()) for found in _TOKEN.finditer(text))


def as_treebank(text: str) -> tuple[CutWord, ...]:
    """The same with contractions cut: ca n't, it 's."""
    return tuple(part for word in at_signs(text) for part in _cut_contraction(word))


def _cut_contraction(word: CutWord) -> list[CutWord]:
    written = word.written
    found = _CONTRACTION.fullmatch(written)
    place = len(found[1]) if found else _JOINED.get(written.lower(), 0)
    middle = word.start + place
    parts = [CutWord(written[:place], word.start, middle)] if place else []
    return [*parts, CutWord(written[place:], middle, word.end)]


CUTTINGS = {"treebank": as_treebank, "signs": at_signs, "blanks": at_blanks}


OUTSIDE = "O"


@dataclass(frozen=True)
class Entity:
    """A stretch of words of one kind: from the word `start` to the word before `end`."""

    kind: str
    start: int
    end: int


def is_bio(labels: Sequence[str]) -> bool:
    """Tells whether these labels write entities: O, and others that begin with B- or I-."""
    others = [label for label in labels if label != OUTSIDE]
    return bool(others) and all(label[:2] in ("B-", "I-") and label[2:] for label in others)


def entities_of(tags: Sequence[str | None]) -> tuple[Entity, ...]:
    """The entities in order. None: a word without an answer, which ends an entity."""
    found: list[Entity] = []
    for place, tag in enumerate(tags):
        kind = (tag or OUTSIDE)[2:]
        last = found[-1] if found else None
        goes_on = last is not None and last.end == place and last.kind == kind
        if goes_on and tag is not None and tag.startswith("I-"):
            found[-1] = replace(found[-1], end=place + 1)
        elif kind:
            found.append(Entity(kind, place, place + 1))
    return tuple(found)


_DOCUMENT = "-DOCSTART-"
_N_COLUMNS, _FORM, _TAG = 10, 1, 3  # of CoNLL-U


def load_words(spec: str) -> WordCorpus:
    """Reads the texts a user names, such as `ud-ewt:data/ud-ewt`."""
    corpus = read_source(spec, WORD_SOURCES, "source of words called")
    if not corpus.examples:
        raise UserError(f"{spec} holds no texts.")
    return corpus


def _own_files(
    path: Path,
    options: Mapping[str, str],
    endings: Sequence[str],
    read: Callable[[Path, str], Iterator[WordExample]],
) -> WordCorpus:
    """A user's own files: a folder with train and test files, or one file, which is learned from.

    read: the texts of one file, which belongs to this split.
    """
    name = options.get("task", "tags")
    if not can_name_task(name):
        raise UserError(f"task={name}: choose a name of letters, digits, - and _.")
    cutting = choice(options, "words", list(CUTTINGS))
    examples: list[WordExample] = []
    for split, file in _named_after_splits(path, endings).items():
        examples += read(file, split)
    examples = _with_test_share(examples, number(options, "test", 0.0))
    return WordCorpus(path.name, name, labels_of(examples), tuple(examples), cutting)


def _named_after_splits(path: Path, endings: Sequence[str]) -> dict[str, Path]:
    if not path.is_dir():
        require_file(path)
        return {"train": path}
    found: dict[str, Path] = {}
    for file in sorted(path.iterdir()):
        plain = Path(file.name.removesuffix(".gz"))
        split = SPLIT_WORDS.get(plain.stem.lower())
        if split is not None and plain.suffix in endings:
            found.setdefault(split, file)
    if not found:
        names = ", ".join(f"train{ending}" for ending in endings)
        raise UserError(f"{path} holds no file called train, valid or test: {names} are read.")
    return found


def _with_test_share(examples: list[WordExample], share: float) -> list[WordExample]:
    """Sets a share of the texts aside as the test split, the same ones every time."""
    if not share:
        return examples
    if share >= 1:
        raise UserError(f"test={share:g} leaves nothing to learn from: choose a share below 1.")
    if any(one.split != "train" for one in examples):
        raise UserError(f"test={share:g}: there is a test part already. Leave the option out.")
    return [replace(one, split=split_by_hash(one.key, test_share=share)) for one in examples]


def _read_conll(path: Path, options: Mapping[str, str]) -> WordCorpus:
    """Reads a word and its tag a line, a blank line between texts, as in the CoNLL shared tasks.

    Tjong Kim Sang and De Meulder 2003, arXiv cs/0306050. The word is the first column and the tag
    the last; columns are set apart by tabs or blanks.
    """
    return _own_files(path, options, (".conll", ".txt", ".tsv", ".bio", ".iob"), _conll_texts)


def _conll_texts(file: Path, split: str) -> Iterator[WordExample]:
    def cell(place: str, line: str) -> _Cell:
        columns = line.split()
        if not columns or columns[0] == _DOCUMENT:
            return None
        if len(columns) < 2:
            raise UserError(f"{place}: a word and its tag are expected, not {line.strip()!r}.")
        return columns[0], columns[-1]

    return _texts_of(file, split, cell)


_Cell = tuple[str, str] | tuple[()] | None
"""A word and its tag; () where a line has none, None where a text ends."""


def _texts_of(file: Path, split: str, cell: Callable[[str, str], _Cell]) -> Iterator[WordExample]:
    """The texts of a file of a word a line. cell: what a line says, by its place and the line."""
    words: list[str] = []
    tags: list[str] = []
    last = ""
    for place, line in chain(text_lines(file), [("", "")]):
        found = cell(place, line) if line.strip() else None
        if found:
            last = place
            words.append(found[0])
            tags.append(found[1])
        elif found is None and words:
            yield WordExample(check_words(words, last), check_tags(tags, last), split=split)
            words, tags = [], []


def _read_ud(path: Path, options: Mapping[str, str]) -> WordCorpus:
    """Reads words and universal parts of speech from files in the form of Universal Dependencies.

    De Marneffe et al. 2021, "Universal Dependencies"; Silveira et al. 2014, "A Gold Standard
    Dependency Corpus for English". A folder with train, dev and test files, or one file. Where
    there is no train file, dev is learned from.
    """
    notes: tuple[str, ...] = ()
    found = find_files(path, _UD_FILES) if path.is_dir() else {"train": path}
    if "train" not in found and "valid" in found:
        notes = (f"{path} has no train file: its dev file is learned from.",)
        found = {"train": found.pop("valid"), **found}
    examples = [one for split, file in found.items() for one in _ud_texts(file, split)]
    return WordCorpus("ud-ewt", "part_of_speech", labels_of(examples), tuple(examples), notes=notes)


_UD_FILES = {"train": "*train*.conllu", "valid": "*dev*.conllu", "test": "*test*.conllu"}


def _ud_texts(file: Path, split: str) -> Iterator[WordExample]:
    def cell(place: str, line: str) -> _Cell:
        columns = line.split("\t")
        if columns[0].startswith("#"):
            return ()
        if len(columns) != _N_COLUMNS:
            raise UserError(
                f"{place}: {len(columns)} columns where CoNLL-U has {_N_COLUMNS}, with tabs between"
                " them."
            )
        # 3-4 stands for the words 3 and 4 together, 8.1 for one that is not written
        return ("_".join(columns[_FORM].split()), columns[_TAG]) if columns[0].isdigit() else ()

    return _texts_of(file, split, cell)


def _read_json(path: Path, options: Mapping[str, str]) -> WordCorpus:
    """Reads a JSON object a line, {"words": […], "tags": […]} or {"words": […], "span": [0, 2]}.

    A span is the first word and the word after the last, counted from 0; null where the text has
    none. Both may be given. "split" says train, valid or test.
    """
    return _own_files(path, options, (".jsonl",), _json_texts)


def _json_texts(file: Path, split: str) -> Iterator[WordExample]:
    for place, line in text_lines(file):
        if line.strip():
            yield _json_text(line, place, split)


def _json_text(line: str, place: str, split: str) -> WordExample:
    try:
        row = from_json(line)
    except ValueError as error:
        raise UserError(f"{place}: not readable as JSON ({error}).") from error
    if not isinstance(row, dict) or not _are_strings(row.get("words")):
        raise UserError(f'{place}: an object with "words", a list of strings, is expected.')
    words, tags, span = check_words(row["words"], place), row.get("tags"), row.get("span")
    own = row.get("split", split)
    if not isinstance(own, str) or own not in SPLIT_WORDS:
        raise UserError(f"{place}: the split {own!r:.60} is none of {', '.join(SPLIT_WORDS)}.")
    if tags is not None and not (_are_strings(tags) and len(tags) == len(words)):
        raise UserError(f'{place}: "tags" must be {len(words)} strings, one for each word.')
    match span:
        case None:
            pass
        case [int(first), int(last)] if 0 <= first < last <= len(words):
            span = first, last
        case _:
            raise UserError(
                f'{place}: "span" must be null or the first word and the one after the last, from 0'
                f" to {len(words)}, not {span!r:.60}."
            )
    tags = None if tags is None else check_tags(tags, place)
    return WordExample(words, tags, "span" in row, span, SPLIT_WORDS[own])


def _are_strings(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) and one for one in value)


# --- Sarcasm SIGN


KEPT, CHANGED = "kept", "changed"
CHANGED_SHARE = 2 / 5
"""The share of interpreters who must change a word."""


def _read_sign(path: Path, options: Mapping[str, str]) -> WordCorpus:
    """Reads where the sarcasm of a tweet sits, by what people changed to say it plainly.

    Peled and Reichart 2017, arXiv 1704.06836. A word of the tweet counts as changed where two of
    five interpreters, or the same share of more, replaced or left it out (word by word, `difflib`);
    what they only added belongs to no word. As a span: the longest stretch of changed words, of
    equals the first.

    All files are read together and divided anew by tweet. The parts are others than those of `sign`
    (`parallel.py`), which keeps the authors': a model of one must not be judged by the other's.
    """
    said: dict[str, list[list[str]]] = {}
    words_of: dict[str, tuple[str, ...]] = {}
    n_silent = 0
    for one in read_interpretations(path):
        n_silent += not one.meant
        if one.meant:
            words_of.setdefault(one.key, tuple(one.tweet.split()))
            said.setdefault(one.key, []).append(one.meant.split())
    examples = []
    for key, words in words_of.items():
        places = Counter(place for meant in said[key] for place in changed_words(words, meant))
        # a little less: 2 of 5 is exactly the share
        least = CHANGED_SHARE * len(said[key]) - 1e-9
        tags = tuple(CHANGED if places[place] >= least else KEPT for place in range(len(words)))
        split = split_by_hash(text_key(" ".join(words)), test_share=0.2)
        span = longest_stretch(tags, CHANGED)
        examples.append(WordExample(words, tags, True, span, split))
    notes = note_silent(n_silent)
    return WordCorpus("sarcasm-sign", "locus", (KEPT, CHANGED), tuple(examples), "signs", notes)


def changed_words(words: Sequence[str], meant: Sequence[str]) -> list[int]:
    """The places of words that the other text replaces or leaves out."""
    matcher = SequenceMatcher(None, words, meant, autojunk=False)
    same = (range(one.a, one.a + one.size) for one in matcher.get_matching_blocks())
    return sorted({*range(len(words))}.difference(*same))


def longest_stretch(tags: Sequence[str], wanted: str) -> Span | None:
    """Finds the longest stretch of words that all have this tag; None: no word has it."""
    places = enumerate(tags)
    groups = [[place for place, _ in group] for _, group in groupby(places, itemgetter(1))]
    own = [group for group in groups if tags[group[0]] == wanted]
    best = max(own, key=len, default=None)
    return None if best is None else (best[0], best[-1] + 1)


WORD_SOURCES = sources_of(
    "words",
    {"ud-ewt": _read_ud, "conll": _read_conll, "words": _read_json, "sarcasm-sign": _read_sign},
)
