"""The five patterns of attention maps (Kovaleva et al. 2019, arXiv 1908.08593, §4.1)."""

from __future__ import annotations

VERTICAL = "vertical"
DIAGONAL = "diagonal"
BOTH = "vertical+diagonal"
BLOCK = "block"
HETEROGENEOUS = "heterogeneous"

CLASSES: dict[str, str] = {
    VERTICAL: "most queries look at the same few keys: [CLS], [SEP], punctuation",
    DIAGONAL: "every query looks at itself or at its neighbours",
    BOTH: "a few shared keys, and beside them the neighbours",
    BLOCK: "every query looks at its own text of a pair, or its own sentence",
    HETEROGENEOUS: "none of these: it depends on what the words mean",
}
"""Every class with its meaning, in the order of all probabilities."""
