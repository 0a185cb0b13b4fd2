"""A rewrite: one feature of a variety of English as a rule that changes a text and keeps its
meaning.

A rule sees the text without its addresses: URLs, @mentions, #hashtags and e-mail addresses are set
aside before and put back after, so that no rule changes them.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from litotes.data.rewrites.atlas import COMMON, FEATURES, VARIETIES

Change = Callable[[str, Random], str]
"""The rule itself: a text, and what is random about it, to the changed text."""

_ADDRESS = re.compile(
    r"(?:https?://|www\.)\S+|(?<![\w.+-])[\w.+-]{1,64}@\w[\w.-]*|[@#]\w+|\b[ru]/\w+"
    r"|[\ue000-\uf8ff]",
    re.IGNORECASE,
)
_FIRST, _N_PLACES = 0xE000, 0xF8FF - 0xE000 + 1
"""Characters for private use stand in for addresses while a rule works."""


@dataclass(frozen=True)
class Rewrite:
    """One feature.

    about: what it does, in a line. skips: which texts it leaves as they are.
    examples: texts before and after. feature: its number in eWAVE, None where eWAVE has none.
    settles: a second time it changes nothing.
    """

    about: str
    skips: str
    change: Change
    examples: tuple[tuple[str, str], ...]
    feature: int | None = None
    settles: bool = True

    def __call__(self, text: str, *, seed: int = 0) -> str:
        """The text with the feature; the same text where the rule does not apply.

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
        """What eWAVE calls the feature; our own line where it has none."""
        return self.about if self.feature is None else FEATURES[self.feature].name

    def values(self) -> dict[str, str]:
        """How common it is in each of our varieties: A pervasive … D absent; {} outside eWAVE."""
        if self.feature is None:
            return {}
        return dict(zip(VARIETIES, FEATURES[self.feature].values, strict=True))

    def common_in(self) -> tuple[str, ...]:
        """The tags of the varieties (en-AU …) in which eWAVE calls it pervasive or neither
        pervasive nor rare.
        """
        found = [VARIETIES[name] for name, value in self.values().items() if value in COMMON]
        return tuple(dict.fromkeys(found))
