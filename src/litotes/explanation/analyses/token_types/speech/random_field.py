"""A conditional random field over the words of a sentence (Lafferty, McCallum and Pereira 2001),
run by CRFsuite (Okazaki 2007) with trained weights from a package.

    tags = argmax_y Σ_i [ Σ_feature w(feature, y_i) + v(y_{i-1}, y_i) ]      by Viterbi

The features of word i describe the word itself and the two on either side. The weights are those
of `gruut-lang-en` (MIT licence): trained on treebanks of Universal Dependencies (its words are
those of EWT and GUM), with the tags of the Penn treebank. Only its file is read; its code is never
run.

CRFsuite trusts the offsets in a model file, so a forged one could make it read anywhere in memory.
It is given nothing but the bytes whose hash is known.
"""

from __future__ import annotations

import string
from base64 import b64encode
from collections.abc import Sequence
from functools import lru_cache
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path

from litotes.core.errors import UserError

_WEIGHTS_PACKAGE, _FILE = "gruut_lang_en", Path("pos", "model.crf")
_SHA256 = "b1346e25531e289aa3dcd48228cbdfe6250b812b83d3a2e136d81dbbf92b5108"

_OFFSETS = {"": 0, "-2:": -2, "-1:": -1, "+1:": 1, "+2:": 2}
"""How far a word sees, by the prefixes of the trained weights' names."""

Features = dict[str, float]


def is_installed() -> bool:
    """Whether CRFsuite and the package with the weights are installed."""
    return find_spec("pycrfsuite") is not None and find_spec(_WEIGHTS_PACKAGE) is not None


class RandomField:
    """Penn treebank tags (NN, VBZ, …) for a sentence in a treebank's words."""

    def __init__(self) -> None:
        if not is_installed():
            raise UserError(
                "Parts of speech need the packages python-crfsuite and gruut-lang-en: pip install"
                " 'litotes[analysis]'."
            )
        import pycrfsuite

        self._content = _read_weights()  # CRFsuite works on these bytes and does not copy them
        self._tagger = pycrfsuite.Tagger()
        self._tagger.open_inmemory(self._content)

    def tags(self, words: Sequence[str]) -> list[str]:
        """One tag for each word of a sentence of at least one word."""
        return self._tagger.tag([_features_at(place, words) for place in range(len(words))])


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
    """What is known of a word and of its neighbours, each under the prefix of its offset."""
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
