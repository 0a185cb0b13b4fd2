"""The model card: what a model folder says about itself to a person.

Labels, names and paths come from anywhere: in the card they are text, never Markdown. The header,
by which the Hugging Face Hub files a model, is YAML; every text in it is quoted as in JSON, which
YAML reads alike.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any

from litotes.core.json_text import to_json
from litotes.core.pages import render
from litotes.core.text import harmless, markdown
from litotes.core.values import KINDS
from litotes.encoder.encoder import Encoder
from litotes.encoder.fetching import BUNDLED, FETCHABLE
from litotes.evaluation.evaluate import AnyScores, CellScores
from litotes.evaluation.scores import RegressionScores
from litotes.model.checkpoint import Model, SavedWordModel

_HUB_NAME = re.compile(r"([\w.-]+/[\w.-]+)@[0-9a-f]{40}")
_MARKDOWN = str.maketrans({char: f"\\u{ord(char):04x}" for char in "<>[]`&"})
"""Where the header is taken for Markdown, no text in it makes a link or a tag."""


def model_card(model: Model, rows: Sequence[CellScores]) -> str:
    """Markdown with the facts, the scores and their limits, below a header for the Hub."""
    text = _card("training/card.txt", model, model.classifier.encoder, rows=rows)
    return "\n".join([*card_header(model, rows), "", text])


def word_card(model: SavedWordModel, scores: Mapping[str, Any]) -> str:
    """Markdown with the facts, the scores and their limits."""
    network = model.network
    values = {"task": network.task, "about": KINDS[network.kind], "scores": scores}
    return _card("training/word_card.txt", model, network.encoder, **values)


def _card(template: str, model: Model | SavedWordModel, encoder: Encoder, **values: Any) -> str:
    facts = model.facts
    words = {"facts": facts, "recipe": facts["recipe"], "spec": encoder.spec, "code": _code}
    return render(template, model=model, markdown=markdown, **words, **values).rstrip() + "\n"


def _code(text: str) -> str:
    """The text between backquotes, which it must not close."""
    inner = harmless(text, in_terminal=True).replace("`", "'")
    return f"`{inner}`"


def card_header(model: Model, rows: Sequence[CellScores], *, library: str = "litotes") -> list[str]:
    """The lines of the header. library: what loads the model.

    There is no licence in it: the texts learned from decide about it, and nothing is known about
    theirs.
    """
    found = [(row.scores.task, _metric(row.scores)) for row in rows if row.cell == "all"]
    header = render(
        "training/card_header.txt",
        library=library,
        base=hub_name(model.base),
        tasks=model.classifier.tasks,
        results=[(task, metric) for task, metric in found if isfinite(metric[2])],
        facts=model.facts,
        quote=_quote,
    )
    return header.split("\n")


def _metric(scores: AnyScores) -> tuple[str, str, float]:
    if isinstance(scores, RegressionScores):
        return "pearsonr", "Pearson's r", round(scores.pearson, 4)
    return "f1", "macro-F1", round(scores.macro_f1, 4)


def hub_name(base: str) -> str | None:
    """The encoder's name on the Hub; None for a folder of one's own."""
    if base in BUNDLED:
        return BUNDLED[base].hub_name
    if base in FETCHABLE:
        return FETCHABLE[base].hub_name
    found = _HUB_NAME.fullmatch(base)
    return None if found is None else found[1]


def _quote(value: str | float) -> str:
    text = harmless(value, in_terminal=True) if isinstance(value, str) else value
    return to_json(text).translate(_MARKDOWN)
