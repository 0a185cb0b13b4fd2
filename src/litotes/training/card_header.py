"""The header of a model card, by which the Hugging Face Hub files a model: YAML between two lines
of dashes.

Every text is quoted as in JSON, which YAML reads alike; so names from anywhere stay names.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from math import isfinite
from typing import Any

from litotes.core.json_text import to_json
from litotes.core.text import harmless
from litotes.encoder.bundled import BUNDLED
from litotes.encoder.fetchable import FETCHABLE
from litotes.evaluation.evaluate import AnyScores, CellScores
from litotes.evaluation.scores import RegressionScores
from litotes.model.checkpoint import Model

_HUB_NAME = re.compile(r"([\w.-]+/[\w.-]+)@[0-9a-f]{40}")
_MARKDOWN = str.maketrans({char: f"\\u{ord(char):04x}" for char in "<>[]`&"})
"""Where the header is taken for Markdown, no text in it makes a link or a tag."""


def card_header(model: Model, rows: Sequence[CellScores], *, library: str = "litotes") -> list[str]:
    """The lines of the header. library: what loads the model.

    There is no licence in it: the texts learned from decide about it, and nothing is known about
    theirs.
    """
    tasks = model.classifier.tasks.values()
    metrics = {"pearsonr" if task.is_regression else "f1": None for task in tasks}
    facts: dict[str, Any] = {
        "language": "en",
        "library_name": library,
        "pipeline_tag": "text-classification",
    }
    base = hub_name(model.base)
    if base is not None:
        facts["base_model"] = base
    facts |= {"tags": [task.name for task in tasks], "metrics": list(metrics)}
    results = [_result(row.scores, model) for row in rows if _is_known(row)]
    if results:
        facts["model-index"] = [{"name": " and ".join(model.classifier.tasks), "results": results}]
    return ["---", *_write(facts), "---"]


def hub_name(base: str) -> str | None:
    """The encoder's name on the Hub; None for a folder of one's own."""
    if base in BUNDLED:
        return BUNDLED[base].hub_name
    if base in FETCHABLE:
        return FETCHABLE[base].hub_name
    found = _HUB_NAME.fullmatch(base)
    return None if found is None else found[1]


def _is_known(row: CellScores) -> bool:
    return row.cell == "all" and isfinite(_metric(row.scores)["value"])


def _result(scores: AnyScores, model: Model) -> dict[str, Any]:
    source = model.facts["recipe"]["data"]["source"]
    return {
        "task": {"type": "text-classification", "name": scores.task},
        "dataset": {"name": source, "type": source},
        "metrics": [_metric(scores)],
    }


def _metric(scores: AnyScores) -> dict[str, Any]:
    if not isinstance(scores, RegressionScores):
        return {"type": "f1", "name": "macro-F1", "value": round(scores.macro_f1, 4)}
    return {"type": "pearsonr", "name": "Pearson's r", "value": round(scores.pearson, 4)}


def _write(content: dict[str, Any]) -> Iterator[str]:
    """The lines of a table; those of a list in it begin with a dash."""
    for key, value in content.items():
        if isinstance(value, dict):
            yield f"{key}:"
            yield from (f"  {line}" for line in _write(value))
        elif isinstance(value, list):
            yield f"{key}:"
            for item in value:
                first, *others = _write(item) if isinstance(item, dict) else [_quote(item)]
                yield f"- {first}"
                yield from (f"  {line}" for line in others)
        else:
            yield f"{key}: {_quote(value)}"


def _quote(value: str | float) -> str:
    text = harmless(value, in_terminal=True) if isinstance(value, str) else value
    return to_json(text).translate(_MARKDOWN)
