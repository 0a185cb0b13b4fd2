"""sarcasm-sign: where the sarcasm of a tweet sits, by what people changed to say it plainly.

Peled and Reichart 2017, arXiv 1704.06836. A word of the tweet counts as changed where two of five
interpreters, or the same share of more, replaced or left it out (word by word, `difflib`); what
they only added belongs to no word. As a span: the longest stretch of changed words, of equals the
first.

All files are read together and divided anew by tweet. The parts are others than those of `sign`
(`data/parallel.py`), which keeps the authors': a model of one must not be judged by the other's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import SequenceMatcher
from itertools import groupby
from pathlib import Path

from litotes.data.corpus import split_by_hash, text_key
from litotes.data.sarcasm_sign import note_silent, read_interpretations
from litotes.data.words.corpus import Span, WordCorpus, WordExample

TASK = "locus"
KEPT, CHANGED = "kept", "changed"
CHANGED_SHARE = 2 / 5
"""Of the interpreters."""
TEST_SHARE = 0.2


def read(path: Path, options: Mapping[str, str]) -> WordCorpus:
    said: dict[str, list[tuple[str, ...]]] = {}
    words_of: dict[str, tuple[str, ...]] = {}
    n_silent = 0
    for one in read_interpretations(path):
        if not one.meant:
            n_silent += 1
            continue
        words_of.setdefault(one.key, tuple(one.tweet.split()))
        said.setdefault(one.key, []).append(tuple(one.meant.split()))
    examples = tuple(_example(words_of[key], meant) for key, meant in said.items())
    notes = note_silent(n_silent)
    return WordCorpus("sarcasm-sign", TASK, (KEPT, CHANGED), examples, "signs", notes)


def _example(words: tuple[str, ...], interpretations: Sequence[tuple[str, ...]]) -> WordExample:
    counts = [0] * len(words)
    for meant in interpretations:
        for place in changed_words(words, meant):
            counts[place] += 1
    # a little less: 2 of 5 is exactly the share
    least = CHANGED_SHARE * len(interpretations) - 1e-9
    tags = tuple(CHANGED if count >= least else KEPT for count in counts)
    split = split_by_hash(text_key(" ".join(words)), test_share=TEST_SHARE)
    return WordExample(words, tags, True, longest_stretch(tags, CHANGED), split)


def changed_words(words: Sequence[str], meant: Sequence[str]) -> list[int]:
    """The places of words that the other text replaces or leaves out."""
    changed: list[int] = []
    for action, start, end, _, _ in SequenceMatcher(None, words, meant, False).get_opcodes():
        if action in ("replace", "delete"):
            changed += range(start, end)
    return changed


def longest_stretch(tags: Sequence[str], wanted: str) -> Span | None:
    """Of the stretches of words that all have this tag, the longest; None: no word has it."""
    best: Span | None = None
    place = 0
    for tag, group in groupby(tags):
        end = place + len(list(group))
        if tag == wanted and (best is None or end - place > best[1] - best[0]):
            best = place, end
        place = end
    return best
