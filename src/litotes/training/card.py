"""The model card: what a model folder says about itself to a person.

Labels, names and paths come from anywhere: in the card they are text, never Markdown.
"""

from __future__ import annotations

from collections.abc import Sequence

from litotes.core.text import harmless, markdown
from litotes.evaluation.evaluate import CellScores
from litotes.evaluation.scores import RegressionScores
from litotes.model.checkpoint import Model
from litotes.training.card_header import card_header


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
