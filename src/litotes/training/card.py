"""The model card: what a model folder says about itself to a person.

Labels, names and paths come from anywhere: in the card they are text, never Markdown.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from math import isfinite
from typing import Any

from litotes.core.json_text import to_json
from litotes.core.text import harmless, markdown
from litotes.core.values import KINDS
from litotes.encoder.fetching import BUNDLED, FETCHABLE
from litotes.evaluation.evaluate import AnyScores, CellScores
from litotes.evaluation.scores import RegressionScores
from litotes.model.checkpoint import Model, SavedWordModel


def model_card(model: Model, rows: Sequence[CellScores]) -> str:
    """Markdown with the facts, the scores and their limits, below a header for the Hub."""
    facts, spec = model.facts, model.classifier.encoder.spec
    recipe = facts["recipe"]
    lines = [
        *card_header(model, rows),
        "",
        f"# {markdown(' and '.join(model.classifier.tasks))} classifier",
        "",
        (
            f"Encoder {_code(model.base)} ({spec.family}, {spec.n_layers} layers, width"
            f" {spec.width}),"
            f" head `{model.classifier.head_name}`, weighting `{spec.weighting}`, pruning"
            f" `{spec.pruning}`. Trained by litotes on {facts['data']['n_train']} texts of"
            f" {_code(recipe['data']['source'])}{_selection(recipe['data']['where'])}, seed"
            f" {recipe['seed']}."
        ),
        "",
        *[
            f"- **{markdown(task.name)}**: {markdown(', '.join(task.labels)) or 'a number'}"
            f"{' (several of them, or none)' if task.multi_label else ''}"
            for task in model.classifier.tasks.values()
        ],
        "",
        "## Scores on the test split",
        "",
        *(
            _score_table(rows)
            if rows
            else ["The data has no test split; nothing is known about this model's quality."]
        ),
        "",
        (
            "The interval is a 95 % bootstrap over texts of this test split, for this one training"
            " run. It says nothing about other varieties, platforms or years; test there before you"
            " trust it there."
        ),
        "",
        *[f"> {markdown(note)}" for note in facts["notes"]],
    ]
    return "\n".join(lines).rstrip() + "\n"


def _selection(where: dict[str, object]) -> str:
    chosen = [f"{key} {value}" for key, value in where.items() if value]
    return f" ({markdown(', '.join(chosen))})" if chosen else ""


def _code(text: str) -> str:
    """The text between backquotes, which it must not close."""
    inner = harmless(text, in_terminal=True).replace("`", "'")
    return f"`{inner}`"


def _score_table(rows: Sequence[CellScores]) -> list[str]:
    lines = [
        "| task | texts of | n | score | 95 % interval | majority line |",
        "|---|---|---|---|---|---|",
    ]
    for row in rows:
        scores = row.scores
        low, high = scores.interval
        value, majority = (
            (f"macro-F1 {scores.macro_f1:.3f}", f"{scores.majority:.3f}")
            if not isinstance(scores, RegressionScores)
            else (f"Pearson {scores.pearson:.3f}", "")
        )
        lines.append(
            f"| {markdown(scores.task)} | {markdown(row.cell)} | {scores.n} | {value} |"
            f" {low:.3f} to {high:.3f} | {majority} |"
        )
    return lines


# The header of a model card, by which the Hugging Face Hub files a model: YAML between two lines
# of dashes.
#
# Every text is quoted as in JSON, which YAML reads alike; so names from anywhere stay names.

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


def word_card(model: SavedWordModel, scores: Mapping[str, Any]) -> str:
    """Markdown with the facts, the scores and their limits."""
    network, facts = model.network, model.facts
    spec, task = network.encoder.spec, network.task
    source = harmless(facts["recipe"]["data"]["source"], in_terminal=True).replace("`", "'")
    lines = [
        f"# {markdown(task.name)}: {KINDS[network.kind]}",
        "",
        (
            f"Encoder `{harmless(model.base, in_terminal=True)}` ({spec.family}, {spec.n_layers}"
            f" layers, width {spec.width}), weighting `{spec.weighting}`, pruning"
            f" `{spec.pruning}`. Trained by litotes on {facts['data']['n_train']} texts of"
            f" `{source}`, seed {facts['recipe']['seed']}."
        ),
        "",
    ]
    if task.labels:
        lines += [f"Labels: {markdown(', '.join(task.labels))}.", ""]
    lines += ["## Scores on the test split", "", *_word_score_table(scores), ""]
    lines += [f"> {markdown(note)}" for note in facts["notes"]]
    return "\n".join(lines).rstrip() + "\n"


def _word_score_table(scores: Mapping[str, Any]) -> list[str]:
    if not scores:
        return ["The data has no test split; nothing is known about this model's quality."]
    names = {
        "accuracy": ("word accuracy", "interval"),
        "macro_f1": ("macro-F1 of words", "macro_f1_interval"),
        "entity_f1": ("entity F1", "entity_f1_interval"),
        "exact_match": ("exact match", "exact_match_interval"),
        "overlap_f1": ("overlap F1", "overlap_f1_interval"),
    }
    lines = ["| score | value | 95 % interval over texts |", "|---|---|---|"]
    for key, (name, bounds) in names.items():
        if scores.get(key) is not None:
            low, high = scores[bounds]
            lines.append(f"| {name} | {scores[key]:.3f} | {low:.3f} to {high:.3f} |")
    for baseline in scores.get("baselines", {}).values():
        low, high = baseline["interval"]
        lines.append(
            f"| word accuracy of each word's most frequent tag | {baseline['accuracy']:.3f} |"
            f" {low:.3f} to {high:.3f} |"
        )
    return lines
