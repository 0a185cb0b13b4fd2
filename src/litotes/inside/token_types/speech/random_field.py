"""A conditional random field over the words of a sentence (Lafferty, McCallum and Pereira 2001),
with trained weights from a package.

    tags = argmax_y Σ_i [ Σ_look w(look, y_i) + v(y_{i-1}, y_i) ]      by Viterbi; looks: of the word i and of the two on either side

The weights are those of `gruut-lang-en` (MIT licence): trained on treebanks of Universal
Dependencies (its words are those of EWT and GUM), with the tags of the Penn treebank. Only its file
is read; its code is never run.
"""

from __future__ import annotations

import re
import string
from base64 import b64encode
from collections.abc import Sequence
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from litotes.core.counts import Floats
from litotes.core.errors import UserError
from litotes.core.storage import sha256_of
from litotes.inside.token_types.speech.crfsuite_file import FieldWeights, read_weights

_PACKAGE, _FILE = "gruut_lang_en", Path("pos", "model.crf")
_SHA256 = "b1346e25531e289aa3dcd48228cbdfe6250b812b83d3a2e136d81dbbf92b5108"
_OFFSETS = {"": 0, "-2:": -2, "-1:": -1, "+1:": 1, "+2:": 2}
"""How far a word sees, by the beginnings of the names of the trained weights."""

_LOOK_NAME = re.compile(r"([-+][12]:)?(.*)", re.DOTALL)
_MOST_WORDS = 16_384
"""Words whose scores are remembered, 2 kB each."""


def is_installed() -> bool:
    """Whether the package with the weights is there."""
    return find_spec(_PACKAGE) is not None


class RandomField:
    """Penn treebank tags (NN, VBZ, …) for a sentence in a treebank's words."""

    def __init__(self) -> None:
        package = find_spec(_PACKAGE)  # finds the files; runs nothing of the package
        if package is None or package.origin is None:
            raise UserError(
                "Parts of speech need the package gruut-lang-en: pip install 'litotes[analysis]'."
            )
        file = Path(package.origin).parent / _FILE
        if not file.is_file() or sha256_of(file) != _SHA256:
            raise UserError(
                f"{file} is not the file this was measured with: pip install --force-reinstall"
                " gruut-lang-en==2.0.1."
            )
        weights = read_weights(file)
        self._tags, self._follows = weights.tags, weights.follows
        self._looks = _Looks(weights)
        self._first, self._last = (self._looks.scores({edge: 1.0})[0] for edge in ("BOS", "EOS"))
        self._scores = lru_cache(_MOST_WORDS)(lambda word: self._looks.scores(_looks_of(word)))

    def tags(self, words: Sequence[str]) -> list[str]:
        """One tag for each word of a sentence that has one at least."""
        scores = np.stack([self._scores(word) for word in words])  # (word, offset, tag)
        total = scores[:, 0].copy()  # (word, tag)
        for n, offset in enumerate(_OFFSETS.values()):
            if offset < 0:
                total[-offset:] += scores[:offset, n]
            elif offset > 0:
                total[:-offset] += scores[offset:, n]
        total[0] += self._first
        total[-1] += self._last
        return [self._tags[tag] for tag in _best_path(total, self._follows)]


class _Looks:
    """The weights of looks, those of one look together, whichever neighbour it is seen from."""

    def __init__(self, weights: FieldWeights) -> None:
        names = [_LOOK_NAME.fullmatch(name).groups(default="") for name in weights.looks]  # type: ignore[union-attr]  # all strings match
        self._number = {
            look: number for number, look in enumerate(dict.fromkeys(look for _, look in names))
        }
        number = np.array([self._number[look] for _, look in names])[weights.look]
        offset = np.array([list(_OFFSETS).index(beginning) for beginning, _ in names])[weights.look]
        order = np.argsort(number, kind="stable")
        self._n_tags = len(weights.tags)
        self._cell = (offset * self._n_tags + weights.tag)[order]
        self._weight = weights.weight[order]
        self._start = np.searchsorted(number[order], np.arange(len(self._number) + 1)).tolist()

    def scores(self, looks: dict[str, float]) -> Floats:
        """Σ strength · w(look, tag), for the word that looks so and for its neighbours.

        (offset, tag)
        """
        numbers = [
            (self._number[look], strength)
            for look, strength in looks.items()
            if look in self._number
        ]
        parts = [
            (slice(self._start[number], self._start[number + 1]), strength)
            for number, strength in numbers
        ]
        cells = np.concatenate([self._cell[part] for part, _ in parts])
        weights = np.concatenate([self._weight[part] * strength for part, strength in parts])
        total = np.zeros(len(_OFFSETS) * self._n_tags)
        np.add.at(total, cells, weights)
        return total.reshape(len(_OFFSETS), self._n_tags)


def _looks_of(word: str) -> dict[str, float]:
    """What is to be seen of a word and how strongly, in the names of the trained weights."""
    looks = {
        "bias": 1.0,
        "len(word)": float(len(word)),
        f"word:{b64encode(word.encode()).decode('ascii')}": 1.0,
    }
    for n in (2, 3):
        looks |= {f"word[:{n}]:{word[:n]}": 1.0, f"word[-{n}:]:{word[-n:]}": 1.0}
    return looks | {
        "word.ispunctuation": float(word in string.punctuation),
        "word.isdigit()": float(word.isdigit()),
    }


def _best_path(scores: Floats, follows: Floats) -> list[int]:
    """The tags with the largest sum (Viterbi 1967). scores: (word, tag), follows: (tag before, tag)"""
    after = np.ascontiguousarray(follows.T)  # (tag, tag before)
    every = np.arange(len(after))
    best, came_from = scores[0], []
    for score in scores[1:]:
        ways = after + best  # (tag, tag before)
        came_from.append(ways.argmax(-1))
        best = ways[every, came_from[-1]] + score
    path = [int(best.argmax())]
    for before in reversed(came_from):
        path.append(int(before[path[-1]]))
    return path[::-1]
