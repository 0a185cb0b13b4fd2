r"""A rewrite puts one feature of a variety of English into a text and keeps its meaning.

Rules are data: each file of `rules/` holds a topic, each of its tables a rule, which finds places
by a pattern and writes other words there. The language of rules:

* A pattern is a regular expression, matched in any case and at word boundaries. A line break in it
  says nothing; a straight apostrophe finds a curly one too. `{name}` is a pattern of the file's
  `[patterns]`, `{swap}` any word of the step's table `swap`, `{@nouns food -idea}` any word of a
  list (`words_of`), `{sentence}` the beginning of a sentence.
* `write` holds the new words: `\1` is a group, `{1:past}` that group in another form (`_write`).
  Without `find` a rule finds the words of `swap`, without `write` it writes theirs. New words begin
  and are accented as the old did, unless `case = false`.
* `after`: what must follow. `unless`: what must not. `unless_before`: what must not stand straight
  before. `n`: at most so many places. `names = false`: words that may belong to a name stay.
  `boundaries = false`: inside words too. `steps`: several such rules in a row.
* What patterns cannot say is Python: `by` names a function of a match, `change` one of the whole
  text (`free.py`).
"""

from __future__ import annotations

import csv
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from litotes.core.values import Example
from litotes.data.rewrites.free import CHANGES, WRITERS
from litotes.data.rewrites.vocabulary import BY_FORM, TABLES, Verb, table, words_of

Change = Callable[[str, Random], str]
"""The rule itself: a text, and what is random about it, to the changed text."""

_FOLDER = Path(__file__).parent
_START, _END = r"(?<![\w'’-])", r"(?![\w'’-])"
_SENTENCE = r"(?:(?<=[.!?]\s)|(?<=\n)|^)"
_N_SEEN = 60
"""The number of characters before a place that a rule looks at."""

_ADDRESS = re.compile(
    r"(?:https?://|www\.)\S+|(?<![\w.+-])[\w.+-]{1,64}@\w[\w.-]*|[@#]\w+|\b[ru]/\w+"
    r"|[\ue000-\uf8ff]",
    re.IGNORECASE,
)
"""URLs, @mentions, #hashtags and e-mail addresses: no rule changes them."""
_FIRST, _N_PLACES = 0xE000, 0xF8FF - 0xE000 + 1
"""Characters for private use stand in for addresses while a rule works."""

VARIETIES = {
    "Australian English": "en-AU",
    "Australian Vernacular English": "en-AU",
    "Indian English": "en-IN",
    "Irish English": "en-IE",
    "Nigerian English": "en-NG",
    "Colloquial Singapore English (Singlish)": "en-SG",
    "East Anglian English": "en-UK",
    "English dialects in the North of England": "en-UK",
    "English dialects in the Southeast of England": "en-UK",
    "English dialects in the Southwest of England": "en-UK",
    "Scottish English": "en-UK",
    "Welsh English": "en-UK",
}
"""The varieties of eWAVE that stand for our tags, in the order of a feature's values."""

COMMON = "AB"
"""The values of a feature that is common."""


class Feature(NamedTuple):
    """A feature of grammar, as the Electronic World Atlas of Varieties of English has it.

    values: how common it is, a letter for each of `VARIETIES`. A: pervasive or obligatory,
    B: neither pervasive nor extremely rare, C: rare, D: absent, X: not applicable, ?: not known.
    """

    name: str
    values: str


with (_FOLDER / "ewave.csv").open(encoding="utf-8", newline="") as _rows:
    FEATURES = {
        int(row["number"]): Feature(row["name"], row["values"]) for row in csv.DictReader(_rows)
    }
"""By number in eWAVE (Kortmann, Lunkenheimer and Ehret, eds., CC BY 3.0)."""


@dataclass(frozen=True, eq=False)
class Rewrite:
    """One feature.

    about: what it does, in a line. skips: which texts it leaves as they are.
    rule: how, in the language of rules. examples: texts before and after.
    feature: its number in eWAVE, None where eWAVE has none.
    settles: a second time it changes nothing.
    """

    about: str
    skips: str
    rule: Mapping[str, Any]
    patterns: Mapping[str, str]
    examples: tuple[tuple[str, str], ...]
    feature: int | None = None
    settles: bool = True

    @cached_property
    def change(self) -> Change:
        """Compiles the rule, when it is first asked for: few of a hundred are."""
        steps = self.rule.get("steps") or [self.rule]
        changes = [_step(step, self.patterns) for step in steps]

        def change(text: str, random: Random) -> str:
            for one in changes:
                text = one(text, random)
            return text

        return change

    def __call__(self, text: str, *, seed: int = 0) -> str:
        """Returns the text with the feature; the same text where the rule does not apply.

        The same for the same seed and text, whatever was rewritten before.
        """
        addresses = _ADDRESS.findall(text)
        if len(addresses) > _N_PLACES:
            return text
        hidden = map(chr, range(_FIRST, _FIRST + len(addresses)))
        masked = _ADDRESS.sub(lambda _: next(hidden), text)
        changed = self.change(masked, Random(f"{seed}\n{text}"))
        if not changed.strip() or changed == masked:
            return text
        return re.sub("[\ue000-\uf8ff]", lambda found: addresses[ord(found[0]) - _FIRST], changed)

    @property
    def title(self) -> str:
        """The feature's name in eWAVE; our own line where it has none."""
        return self.about if self.feature is None else FEATURES[self.feature].name

    def values(self) -> dict[str, str]:
        """Says how common it is in each of our varieties; {} outside eWAVE."""
        if self.feature is None:
            return {}
        return dict(zip(VARIETIES, FEATURES[self.feature].values, strict=True))

    def common_in(self) -> tuple[str, ...]:
        """Returns the tags of the varieties (en-AU …) in which eWAVE calls it common."""
        found = [VARIETIES[name] for name, value in self.values().items() if value in COMMON]
        return tuple(dict.fromkeys(found))


def rewrites_of(topic: str) -> dict[str, Rewrite]:
    """Reads the rules of one topic."""
    file = _FOLDER / "rules" / f"{topic.replace(' ', '-')}.toml"
    rules = tomllib.loads(file.read_text(encoding="utf-8"))
    patterns = rules.pop("patterns", {})
    return {
        name: Rewrite(
            rule.pop("about"),
            rule.pop("skips"),
            examples=tuple((before, after) for before, after in rule.pop("examples")),
            feature=rule.pop("feature", None),
            settles=rule.pop("settles", True),
            rule=rule,
            patterns=patterns,
        )
        for name, rule in rules.items()
    }


def _step(step: Mapping[str, Any], patterns: Mapping[str, str]) -> Change:
    swap = step.get("swap", "")
    swap = TABLES.get(swap) or (table(swap) if swap else {})
    if "change" in step:
        options = {key: value for key, value in step.items() if key != "change"}
        if "where" in options:
            options["where"] = _expand(options["where"], patterns, swap)
        return CHANGES[step["change"]](**options)
    search = re.compile(_searched(step, patterns, swap), re.IGNORECASE)
    unless_before = _expand(step.get("unless_before", "(?!)"), patterns, swap)
    before = re.compile(f"(?:{unless_before})$", re.IGNORECASE)
    writer = WRITERS.get(step.get("by", ""), _write(step.get("write", "{0:swap}"), swap))

    def replaced(found: re.Match[str]) -> str:
        start = found.start()
        if before.search(found.string, max(0, start - _N_SEEN), start):
            return found[0]
        if not step.get("names", True) and _is_name(found):
            return found[0]
        written = writer(found)
        return keep_case(found[0], written) if step.get("case", True) else written

    return lambda text, random: search.sub(replaced, text, count=step.get("n", 0))


def _searched(step: Mapping[str, Any], patterns: Mapping[str, str], swap: Mapping[str, str]) -> str:
    """The pattern of the places that a step changes."""
    after, unless, find = (
        _expand(step.get(key, default), patterns, swap)
        for key, default in (("after", ""), ("unless", ""), ("find", "{swap}"))
    )
    if not step.get("boundaries", True):
        return f"(?:{find})"
    ending = f"(?={after})" if after else _END
    return f"{_START}(?:{find}){ending}" + (f"(?!{unless})" if unless else "")


def _expand(pattern: str, patterns: Mapping[str, str], swap: Mapping[str, str]) -> str:
    """Puts patterns and lists of words in the place of their names."""

    def named(found: re.Match[str]) -> str:
        name = found[1]
        if name == "sentence":
            return _SENTENCE
        if name in patterns:
            return _expand(patterns[name], patterns, swap)
        words = swap if name == "swap" else words_of(name)
        # the longest first: an alternation takes the first that fits
        return f"(?:{'|'.join(sorted(words, key=lambda word: (-len(word), word)))})"

    filled = re.sub(r"\{([@a-z][^{}]*)\}", named, pattern).replace("\n", "")
    return re.sub(r"\[[^\]]*\]|'", _both_apostrophes, filled)


def _both_apostrophes(found: re.Match[str]) -> str:
    return "['’]" if found[0] == "'" else found[0].replace("'", "'’")


def _write(template: str, swap: Mapping[str, str]) -> Callable[[re.Match[str]], str]:
    r"""Makes new words of a match: \1 … are its groups, {1:form} a group in another form.

    Forms: those of a verb (base, third, past, participle, ing), of be and have for a subject (be,
    was, have), its object (object), `swap` for the step's table (swap_cased: in the old case),
    more or most (degree), the first word (first), and letters: lower, upper, capital, small.
    """
    template = re.sub(r"\\(\d)", r"{\1}", template)

    def formed(found: re.Match[str], place: re.Match[str]) -> str:
        word, form = found[int(place[1])] or "", place[2]
        plain = word.lower().replace("’", "'")
        if not form:
            return word
        if form in Verb._fields:
            return str(getattr(BY_FORM[plain], form))
        if form.startswith("swap"):
            return keep_case(word, swap[plain]) if form == "swap_cased" else swap[plain]
        return _FORMS[form](word, plain)

    places = re.compile(r"\{(\d)(?::(\w+))?\}")
    return lambda found: places.sub(lambda place: formed(found, place), template)


_FORMS: dict[str, Callable[[str, str], str]] = {
    "be": lambda word, plain: {"i": "am", "he": "is", "she": "is", "it": "is"}.get(plain, "are"),
    "was": lambda word, plain: "were" if plain in ("we", "they", "you") else "was",
    "have": lambda word, plain: "has" if plain in ("he", "she", "it") else "have",
    "object": lambda word, plain: "me" if plain == "i" else "us",
    "degree": lambda word, plain: "most" if plain.endswith("st") else "more",
    "er": lambda word, plain: word + "er"[word.endswith("e") :],
    "est": lambda word, plain: word + "est"[word.endswith("e") :],
    "first": lambda word, plain: re.split(r"['’ ]", word)[0],
    "lower": lambda word, plain: word.lower(),
    "upper": lambda word, plain: word.upper(),
    "capital": lambda word, plain: word[0].upper() + word[1:],
    "small": lambda word, plain: word if word == "I" else word[0].lower() + word[1:],
}


def _is_name(found: re.Match[str]) -> bool:
    """Tells whether a capital inside a sentence says that the word may belong to a name."""
    before = found.string[: found.start()].rstrip(' "“(')
    is_capital = found[0][0].isupper() and not found[0].isupper()
    return is_capital and bool(before) and before[-1] not in ".!?:\n"


def keep_case(old: str, new: str) -> str:
    """Writes the new words in the case and with the apostrophes of the old."""
    if "’" in old:
        new = new.replace("'", "’")
    letters = [char for char in old if char.isalpha()]
    if len(letters) > 2 and all(char.isupper() for char in letters):
        return new.upper()
    if letters and letters[0].isupper() and old[:2] not in ("I ", "I'", "I’"):
        return new[:1].upper() + new[1:]
    return new


def rewrite_share(
    examples: Sequence[Example], rewrites: Sequence[Rewrite], *, share: float, seed: int
) -> tuple[tuple[Example, ...], tuple[Example, ...]]:
    """Rewrites about `share` of the examples, and returns all, in their order, and what those were.

    Each text is chosen by a throw of its own and gets one of the rewrites that apply to it; where
    none does it stays as it is. Texts are replaced, not added: training takes as many steps as
    before. Labels stay. The same seed rewrites the same texts in the same way.
    """
    found, replaced = [], []
    for example in examples:
        random = Random(f"rewrite {seed}\n{example.text}")
        text = example.text
        if random.random() < share:
            tried = (one(text, seed=seed) for one in random.sample(rewrites, len(rewrites)))
            text = next((new for new in tried if new != example.text), text)
        if text != example.text:
            replaced.append(example)
            example = replace(example, text=text)
        found.append(example)
    return tuple(found), tuple(replaced)
