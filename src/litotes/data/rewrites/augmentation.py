"""Training texts with features of varieties in them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random

from litotes.core.values import Example
from litotes.data.rewrites.rewrite import Rewrite


def rewrite_share(
    examples: Sequence[Example], rewrites: Sequence[Rewrite], *, share: float, seed: int
) -> tuple[tuple[Example, ...], tuple[Example, ...]]:
    """The examples with about `share` of them rewritten, in their order, and what those were.

    Each text is chosen by a throw of its own and gets one of the rewrites that apply to it; where
    none does it stays as it is. Texts are replaced, not added: training takes as many steps as
    before. Labels stay. The same seed rewrites the same texts in the same way.
    """
    found, replaced = [], []
    for example in examples:
        random = Random(f"rewrite {seed}\n{example.text}")
        changed = example
        if random.random() < share:
            changed = _rewrite_once(example, rewrites, random, seed)
        found.append(changed)
        if changed is not example:
            replaced.append(example)
    return tuple(found), tuple(replaced)


def _rewrite_once(
    example: Example, rewrites: Sequence[Rewrite], random: Random, seed: int
) -> Example:
    for rewrite in random.sample(rewrites, len(rewrites)):
        text = rewrite(example.text, seed=seed)
        if text != example.text:
            return replace(example, text=text)
    return example
