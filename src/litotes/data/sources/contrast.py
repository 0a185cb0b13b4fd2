"""Contrast: invented texts in six varieties of English, built in; on the same topic and in nearly
the same words, what is said is once meant and once not.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from litotes.data.corpus import Corpus
from litotes.data.sources.meant import MeantTexts

VARIETIES = ("en-AU", "en-IE", "en-IN", "en-NG", "en-UK", "en-US")

KINDS = (
    "advice",
    "complaint",
    "deadpan",
    "hyperbole",
    "idiom",
    "joke",
    "litotes",
    "negation",
    "plain",
    "politeness",
    "praise",
    "question",
    "quoted",
    "thanks",
    "understatement",
)
"""What a text looks like, sarcastic or not."""

CONTRAST = MeantTexts("contrast", VARIETIES, KINDS, test_share=0.3)

OPTIONS = CONTRAST.options


def read(path: Path | None, options: Mapping[str, str]) -> Corpus:
    return CONTRAST.read(options)
