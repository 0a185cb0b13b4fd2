"""The model card of a model of words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from litotes.core.text import harmless, markdown
from litotes.core.values import KINDS
from litotes.model.checkpoint import SavedWordModel


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
    lines += ["## Scores on the test split", "", *_score_lines(scores), ""]
    lines += [f"> {markdown(note)}" for note in facts["notes"]]
    return "\n".join(lines).rstrip() + "\n"


def _score_lines(scores: Mapping[str, Any]) -> list[str]:
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
