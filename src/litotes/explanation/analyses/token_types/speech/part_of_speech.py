"""Parts of speech of English words: nouns, pronouns, verbs, punctuation and the rest, without a
download.

`tag` asks a conditional random field (`random_field.py`); `tagger("spacy")` asks a spaCy model, if
the user has one. What counts as what follows Universal Dependencies (de Marneffe et al. 2021):
auxiliaries and modals are verbs, proper names nouns, my and their pronouns, as are this and that
without a noun and the "there" of "there is". Numbers, emoji, URLs, hashtags and mentions are other.

How often it is right, in % (95 % interval), on 862 words of our own in four varieties and 1,035 of
tweets tagged by others (docs/results/effective_attention/parts_of_speech.md):

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

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal, get_args

from litotes.core.errors import UserError
from litotes.core.registry import pick
from litotes.explanation.analyses.token_types.speech.random_field import RandomField
from litotes.explanation.analyses.token_types.speech.treebank_words import (
    has_letters,
    in_addresses,
    is_punctuation,
    sentences,
)

PartOfSpeech = Literal["noun", "pronoun", "verb", "punctuation", "other"]
PARTS_OF_SPEECH: tuple[PartOfSpeech, ...] = get_args(PartOfSpeech)

_PRONOUNS = frozenset((
    "i", "you", "u", "ya", "he", "she", "it", "we", "they", "me", "him", "her", "us", "them", "my",
    "your", "ur", "his", "its", "our", "their", "mine", "yours", "hers", "ours", "theirs", "thou",
    "thee", "thy", "myself", "yourself", "himself", "herself", "itself", "ourselves", "yourselves",
    "themselves", "someone", "somebody", "something", "anyone", "anybody", "anything", "everyone",
    "everybody", "everything", "nobody", "nothing", "who", "whom", "whose", "whoever",
))  # fmt: skip
"""Never anything else, however they are typed.

The Penn treebank calls someone and nothing nouns.
"""

_AUXILIARIES = frozenset((
    "is", "are", "was", "were", "be", "been", "has", "have", "had", "do", "does", "did", "would",
    "could", "should",
))  # fmt: skip

_OF_TAG: dict[str, PartOfSpeech] = {
    **dict.fromkeys(("NN", "NNS", "NNP", "NNPS"), "noun"),
    **dict.fromkeys(("VB", "VBD", "VBG", "VBN", "VBP", "VBZ", "MD"), "verb"),
    **dict.fromkeys(("PRP", "PRP$", "WP", "WP$", "EX"), "pronoun"),
}
_OF_UNIVERSAL: dict[str, PartOfSpeech] = {
    "NOUN": "noun",
    "PROPN": "noun",
    "PRON": "pronoun",
    "VERB": "verb",
    "AUX": "verb",
}
_BELONGS_TO_NOUN = ("NN", "JJ", "CD", "VBG", "VBN")

SentenceTagger = Callable[[Sequence[str]], Sequence[PartOfSpeech]]
"""Tells the parts of speech of one sentence, in a treebank's words."""


@dataclass(frozen=True)
class Tagger:
    """Parts of speech of the words of a text, as any tokenizer cuts them: as many as words, the
    same for the same words.
    """

    read_sentence: SentenceTagger

    def __call__(self, words: Sequence[str]) -> list[PartOfSpeech]:
        parts: list[PartOfSpeech] = [
            "punctuation" if is_punctuation(word) else "other" for word in words
        ]
        for sentence in sentences(words):
            found = self.read_sentence([word.written for word in sentence])
            for word, part in zip(sentence, found, strict=True):
                if word.place is not None and has_letters(words[word.place]):
                    parts[word.place] = part
        for place in in_addresses(words):
            parts[place] = "other"
        return parts


def tag(words: Sequence[str]) -> list[PartOfSpeech]:
    """The part of speech of every word of one text."""
    return tagger("crf")(words)


@cache
def tagger(name: str) -> Tagger:
    """`crf`, or `spacy` with the first English model that is installed."""
    return Tagger(pick(TAGGERS, name, "tagger")())


def _random_field() -> SentenceTagger:
    field = RandomField()

    def read_sentence(words: Sequence[str]) -> list[PartOfSpeech]:
        tags = field.tags(words)
        following = [*tags[1:], ""]
        return [_of_penn(*three) for three in zip(words, tags, following, strict=True)]

    return read_sentence


def _of_penn(word: str, tag: str, tag_after: str) -> PartOfSpeech:
    """From the tags of the Penn treebank, which do not tell "this is" from "this phone", nor "which
    I like" from "which phone".
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


def _spacy() -> SentenceTagger:
    try:
        import spacy
        from spacy.tokens import Doc
    except ImportError as error:
        raise UserError(
            "The tagger 'spacy' needs spaCy: pip install spacy, or take the tagger 'crf'."
        ) from error
    english = sorted(name for name in spacy.util.get_installed_models() if name.startswith("en_"))
    if not english:
        raise UserError(
            "spaCy has no English model here: python -m spacy download en_core_web_sm, or take the"
            " tagger 'crf'."
        )
    model = spacy.load(english[0], exclude=["ner", "parser", "lemmatizer", "senter"])

    def read_sentence(words: Sequence[str]) -> list[PartOfSpeech]:
        read = model(Doc(model.vocab, words=list(words)))
        return [_OF_UNIVERSAL.get(word.pos_, "other") for word in read]

    return read_sentence


TAGGERS: dict[str, Callable[[], SentenceTagger]] = {"crf": _random_field, "spacy": _spacy}
