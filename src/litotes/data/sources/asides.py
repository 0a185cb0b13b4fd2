"""Asides: invented remarks in seven varieties of English, built in, as people make them: comments,
replies, posts, spoken lines, arguments, reviews, headlines; sarcastic or not, mostly without a sign
of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from litotes.data.corpus import Corpus
from litotes.data.sources.contrast import KINDS as KINDS_OF_CONTRAST
from litotes.data.sources.meant import MeantTexts

VARIETIES = ("en-AU", "en-IE", "en-IN", "en-NG", "en-SG", "en-UK", "en-US")

KINDS = tuple(sorted((*KINDS_OF_CONTRAST, "agreement")))

ASIDES = MeantTexts("asides", VARIETIES, KINDS, test_share=0.15)

OPTIONS = ASIDES.options


def read(path: Path | None, options: Mapping[str, str]) -> Corpus:
    return ASIDES.read(options)
