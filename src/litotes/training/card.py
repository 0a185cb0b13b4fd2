"""The model card: what a model folder says about itself to a person."""

from __future__ import annotations

from collections.abc import Sequence

from litotes.evaluation.evaluate import CellScores
from litotes.evaluation.scores import Scores
from litotes.model.checkpoint import Model


def model_card(model: Model, rows: Sequence[CellScores]) -> str:
    """Markdown with the facts, the scores and their limits."""
    facts, spec = model.facts, model.classifier.encoder.spec
    recipe = facts["recipe"]
    lines = [
        f"# {' and '.join(model.classifier.tasks)} classifier",
        "",
        (
            f"Encoder `{model.base}` ({spec.family}, {spec.n_layers} layers, width {spec.width}),"
            f" head `{model.classifier.head_name}`, weighting `{spec.weighting}`, pruning"
            f" `{spec.pruning}`. Trained by litotes on {facts['data']['n_train']} texts of"
            f" `{recipe['data']['source']}`{_selection(recipe['data']['where'])}, seed"
            f" {recipe['seed']}."
        ),
        "",
        *[
            f"- **{task.name}**: {', '.join(task.labels) or 'a number'}"
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
        *[f"> {note}" for note in facts["notes"]],
    ]
    return "\n".join(lines).rstrip() + "\n"


def _selection(where: dict[str, object]) -> str:
    chosen = [f"{key} {value}" for key, value in where.items() if value]
    return f" ({', '.join(chosen)})" if chosen else ""


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
            if isinstance(scores, Scores)
            else (f"Pearson {scores.pearson:.3f}", "")
        )
        lines.append(
            f"| {scores.task} | {row.cell} | {scores.n} | {value} | {low:.3f} to {high:.3f} |"
            f" {majority} |"
        )
    return lines
