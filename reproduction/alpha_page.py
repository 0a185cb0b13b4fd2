"""Where learned α goes from three starts: numbers and figure of docs/results/adaptively_sparse.md.

    litotes study reproduction/study_alpha.toml --out STUDY --set sources.sst2=glue/sst2:PATH
    for run in STUDY/runs/*/; do litotes analyze --model $run/model --data glue/sst2:PATH \
        --only diversity --texts 400 --out LOOK/$(basename $run); done
    python -m reproduction.alpha_page STUDY LOOK

Writes docs/results/adaptively_sparse/learned_alpha.json and .svg, and prints the page's tables.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from litotes.core.figures import BAR, GAP, INK, render_figure
from litotes.core.storage import write_json

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FOLDER = Path(__file__).parent.parent / "docs" / "results" / "adaptively_sparse"


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("study", type=Path)
    parser.add_argument("look", type=Path)
    parser.add_argument("--out", type=Path, default=FOLDER)
    given = parser.parse_args(words)
    numbers = collect(given.study, given.look)
    given.out.mkdir(parents=True, exist_ok=True)
    write_json(given.out / "learned_alpha.json", numbers)
    picture = render_figure(draw(numbers["weightings"]), "svg")
    (given.out / "learned_alpha.svg").write_bytes(picture)
    print("\n".join([*score_table(numbers["weightings"]), "", *layer_table(numbers["weightings"])]))


def collect(study: Path, look: Path) -> dict[str, Any]:
    """For each weighting: scores by seed; α, density and divergence by layer.

    alpha and density: (layer, seed × attention_head); divergence: (layer, seed).
    """
    scores = _scores(study)
    weightings: dict[str, dict[str, Any]] = {}
    for file in sorted(study.glob("runs/*/facts.json")):
        recipe = json.loads(file.read_text("utf-8"))["recipe"]
        seen = json.loads((look / file.parent.name / "diversity.json").read_text("utf-8"))
        name = _name(recipe["model"])
        own = weightings.setdefault(
            name,
            {
                "start": recipe["model"]["weighting_options"].get("start"),
                "macro_f1": scores[name],
                "alpha": [[] for _ in seen["density"]],
                "density": [[] for _ in seen["density"]],
                "divergence": [[] for _ in seen["density"]],
            },
        )
        for layer, density in enumerate(seen["density"]):
            own["density"][layer] += density
            own["divergence"][layer].append(seen["divergence"][layer])
            if own["start"] is not None:
                own["alpha"][layer] += seen["alpha"][layer]
    return {"weightings": {name: weightings[name] for name in sorted(weightings)}}


def _name(model: Mapping[str, Any]) -> str:
    start = model["weighting_options"].get("start")
    if start is not None:
        return f"learned, from {start}"
    return "softmax" if model["weighting"] == "softmax" else "1.5-entmax"


def _scores(study: Path) -> dict[str, list[float]]:
    """Macro-F1 by seed."""
    names = {"softmax": "softmax", "entmax": "1.5-entmax"}
    found = {}
    for experiment in json.loads((study / "report.json").read_text("utf-8"))["experiments"]:
        for table in experiment["tables"]:
            for cell in table["cells"]:
                row = cell["trained_on"]
                found[names.get(row, f"learned, from {row}")] = cell["by_seed"]
    return found


def score_table(weightings: Mapping[str, Mapping[str, Any]]) -> list[str]:
    lines = [
        "| weighting | macro-F1 | by seed | density | divergence, bits |",
        "|---|---|---|---|---|",
    ]
    for name, own in weightings.items():
        seeds = ", ".join(f"{score:.3f}" for score in own["macro_f1"])
        means = [np.mean(own[what]) for what in ("macro_f1", "density", "divergence")]
        lines.append(f"| {name} | {means[0]:.3f} | {seeds} | {means[1]:.2f} | {means[2]:.2f} |")
    return lines


def layer_table(weightings: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Mean α, its range over heads and seeds, and density, by layer and start."""
    learned = {name: own for name, own in weightings.items() if own["start"] is not None}
    lines = ["| layer | " + " | ".join(learned) + " |", "|---|" + "---|" * len(learned)]
    for layer in range(len(next(iter(learned.values()))["alpha"])):
        cells = []
        for own in learned.values():
            alpha, density = own["alpha"][layer], np.mean(own["density"][layer])
            cells.append(f"{np.mean(alpha):.2f} ({min(alpha):.2f}–{max(alpha):.2f}), {density:.2f}")
        lines.append(f"| {layer + 1} | " + " | ".join(cells) + " |")
    return lines


def draw(weightings: Mapping[str, Mapping[str, Any]]) -> Figure:
    """α of every head by layer, a panel for each start."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    learned = [own for own in weightings.values() if own["start"] is not None]
    picture = Figure(figsize=(8.6, 3.2), layout="constrained")
    axes = picture.subplots(1, len(learned), sharey=True, squeeze=False)[0]
    for ax, own in zip(axes, learned, strict=True):
        layers = range(1, len(own["alpha"]) + 1)
        for layer, values in zip(layers, own["alpha"], strict=True):
            places = layer + np.linspace(-0.25, 0.25, len(values))
            ax.plot(places, values, "o", color=BAR, markersize=2.5)
        means = [np.mean(values) for values in own["alpha"]]
        ax.plot(layers, means, "-", color=INK, linewidth=1.4, label="mean of a layer")
        ax.axhline(own["start"], color=GAP, linestyle="--", linewidth=1.2, label="start")
        ax.set_title(f"from {own['start']}", fontsize=11)
        ax.set_xlabel("layer")
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
        ax.set_ylim(1, 2)
    axes[0].set_ylabel("α (1: softmax, 2: sparsemax)")
    handles = axes[0].get_legend_handles_labels()
    picture.legend(*handles, loc="outside lower center", ncols=2, frameon=False, fontsize=8)
    return picture


if __name__ == "__main__":
    main()
