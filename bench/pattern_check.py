"""Real attention maps for labelling by eye, and how far eye, rules and network agree on them.

    CHECK="python bench/pattern_check.py --data PATH"
    $CHECK sheets first --out sheets      # numbered maps, nothing else on them
    $CHECK compare docs/results/effective_attention/pattern_check.json
    $CHECK picture docs/results/effective_attention/pattern_check.json --out patterns.svg

PATH holds besstie/ and glue/. Maps are those of the bundled encoder: one text, layer, attention
head and kind each, drawn at random with a fixed seed. `compare` reads the labels by eye from the
JSON file, writes those of the rules and the network beside them and prints Cohen's κ with bootstrap
intervals. `picture` draws maps on which the eye and the network agree, as the network sees them.
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from litotes.core.numbers import confusion
from litotes.data.sources import load
from litotes.encoder import pretrained
from litotes.encoder.attention.observer import LayerTrace
from litotes.encoder.packing import pack
from litotes.explanation.analyses.patterns import CLASSES, by_rules, classify
from litotes.explanation.analyses.patterns.features import map_features
from litotes.explanation.effective_attention import effective_attention

SOURCES = {"rte": "glue/rte:{}/glue", "mrpc": "glue/mrpc:{}/glue", "besstie": "besstie:{}/besstie"}
KINDS = ("standard", "effective")
N_MAPS = 100
SAMPLES = {"first": (2026, 0), "second": (2026, N_MAPS), "judged": (2027, 0)}
"""Seed and first map of every sample: the generator was improved after `first` and after `second`,
so that only `judged` is untouched.
"""

_PER_SHEET = (4, 3)
_BRIGHTEST = 0.985  # the quantile of |weight| that is drawn in the strongest colour
_N_RESAMPLES = 10_000


@dataclass(frozen=True)
class Coordinates:
    """Where a map comes from. text: its number among the validation texts of the task."""

    task: str
    text: int
    layer: int
    head: int
    kind: str


class Maps:
    """The maps of the bundled encoder on the validation texts under a path."""

    def __init__(self, data: Path) -> None:
        corpora = {task: load(source.format(data)) for task, source in SOURCES.items()}
        self.examples = {
            task: [example for example in corpus.examples if example.split == "valid"]
            for task, corpus in corpora.items()
        }
        self.pretrained = pretrained.load("minilm")

    def sample(self, name: str) -> list[Coordinates]:
        seed, first = SAMPLES[name]
        rng = random.Random(seed)
        spec = self.pretrained.encoder.spec
        drawn = []
        for _ in range(first + N_MAPS):
            task = rng.choice(list(SOURCES))
            text = rng.randrange(len(self.examples[task]))
            layer, head = rng.randrange(len(spec.walk)), rng.randrange(spec.n_attention_heads)
            drawn.append(Coordinates(task, text, layer, head, rng.choice(KINDS)))
        return drawn[first:]

    @torch.inference_mode()
    def at(self, place: Coordinates) -> tuple[Tensor, Tensor]:
        """The map (query, key) and the segments (piece,)."""
        example = self.examples[place.task][place.text]
        (pieces,) = self.pretrained.tokenizer.encode([example.text], [example.pair])
        traces: list[LayerTrace] = []
        self.pretrained.encoder(pack([pieces]), observer=traces.append)
        (view,) = traces[place.layer].by_text()
        maps = (
            view.weights
            if place.kind == "standard"
            else effective_attention(view.weights, view.value, view.mixed).maps
        )
        return maps[place.head], torch.tensor(pieces.segments)


def draw_sheets(maps: Maps, drawn: Sequence[Coordinates], out: Path) -> None:
    """Sheets of numbered maps; a red tick where the second text of a pair begins."""
    out.mkdir(parents=True, exist_ok=True)
    per_sheet = _PER_SHEET[0] * _PER_SHEET[1]
    for start in range(0, len(drawn), per_sheet):
        draw_sheet(
            [maps.at(place) for place in drawn[start : start + per_sheet]],
            start,
            out / f"{start:03d}.png",
        )


def draw_sheet(items: Sequence[tuple[Tensor, Tensor]], first: int, file: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(3 * _PER_SHEET[0], 3.2 * _PER_SHEET[1]), layout="constrained")
    for number, (weights, segments) in enumerate(items):
        ax = figure.add_subplot(_PER_SHEET[1], _PER_SHEET[0], number + 1)
        draw_map(weights, ax)
        n, border = len(weights), int((segments == 0).sum())
        ax.set_title(f"{first + number}   n = {n}{'   pair' if border < n else ''}", fontsize=10)
        if border < n:
            ax.plot([border - 0.5] * 2, [n, n + n / 18], color="red", clip_on=False)
            ax.plot([-1 - n / 18, -1], [border - 0.5] * 2, color="red", clip_on=False)
    figure.savefig(file, dpi=100)


def draw_map(weights: Tensor, ax: Any) -> None:
    """Strong weights dark, negative ones blue; no frame, which would hide the first column."""
    strongest = float(np.quantile(weights.abs().numpy(), _BRIGHTEST)) or 1.0
    signed = bool((weights < -1e-4 * strongest).any())
    ax.imshow(
        weights / strongest,
        cmap="RdBu_r" if signed else "Greys",
        vmin=-1 if signed else 0,
        vmax=1,
        interpolation="nearest",
    )
    ax.set(
        xlim=(-1, len(weights)), ylim=(len(weights), -1), facecolor="#dddddd", xticks=[], yticks=[]
    )
    for side in ax.spines.values():
        side.set_visible(False)


def kappa(counts: NDArray[Any]) -> NDArray[np.float64]:
    """Cohen's κ = (p_o - p_e) / (1 - p_e) of counts (…, class, class); 1 where both always say the
    same one thing.
    """
    share = counts / counts.sum((-2, -1), keepdims=True)
    observed = np.trace(share, axis1=-2, axis2=-1)
    expected = (share.sum(-1) * share.sum(-2)).sum(-1)
    return np.where(expected < 1, (observed - expected) / np.maximum(1 - expected, 1e-12), 1.0)


def agreement(one: Sequence[str], other: Sequence[str]) -> dict[str, Any]:
    """κ, raw agreement and 95 % bootstrap intervals over maps, with the confusion matrix (one,
    other).
    """
    names = list(CLASSES)
    counts = confusion(
        [names.index(label) for label in one], [names.index(label) for label in other], len(names)
    )
    n = int(counts.sum())
    draws = (
        np.random.default_rng(0)
        .multinomial(n, counts.ravel() / n, size=_N_RESAMPLES)
        .reshape(-1, *counts.shape)
    )
    raw = np.trace(draws, axis1=-2, axis2=-1) / n
    return {
        "n_maps": n,
        "kappa": round(float(kappa(counts)), 3),
        "kappa_interval": [
            round(float(edge), 3) for edge in np.quantile(kappa(draws), [0.025, 0.975])
        ],
        "raw": round(float(counts.trace() / n), 3),
        "raw_interval": [round(float(edge), 3) for edge in np.quantile(raw, [0.025, 0.975])],
        "confusion": counts.tolist(),
    }


def where(row: dict[str, Any]) -> Coordinates:
    return Coordinates(row["task"], row["text"], row["layer"], row["head"], row["kind"])


def compare(maps: Maps, file: Path) -> dict[str, Any]:
    """Adds the labels of rules and network to the maps of the file; how far all agree, sample by
    sample.
    """
    content = json.loads(file.read_text("utf-8"))
    for row in content["maps"]:
        weights, segments = maps.at(where(row))
        found = classify(weights[None])
        row |= {
            "rules": by_rules(weights, segments),
            "network": found.labels[0],
            "probability": round(float(found.probabilities.max()), 3),
        }
    content["classes"] = list(CLASSES)
    # others were not drawn at random
    content["agreement"] = {sample: compared(content["maps"], sample) for sample in SAMPLES}
    return content


def draw_picture(maps: Maps, file: Path, out: Path) -> None:
    """Of every class and kind the map that the network is surest of among those on which the eye
    agrees; on the network's grid.
    """
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    rows = json.loads(file.read_text("utf-8"))["maps"]
    figure = Figure(figsize=(2 * len(CLASSES), 4.4), layout="constrained")
    axes = figure.subplots(len(KINDS), len(CLASSES))
    for line, kind in zip(axes, KINDS, strict=True):
        for ax, name in zip(line, CLASSES, strict=True):
            agreed = [
                row for row in rows if row["eye"] == row["network"] == name and row["kind"] == kind
            ]
            row = max(agreed, key=lambda row: row["probability"])
            (grid,) = map_features(maps.at(where(row))[0][None]).grids[:, 0]  # (cell, cell)
            ax.imshow(
                grid,
                cmap="RdBu_r",
                vmin=-float(grid.abs().max()),
                vmax=float(grid.abs().max()),
                interpolation="none",
            )
            ax.set(
                title=f"{name if kind == KINDS[0] else ''}\n{row['probability']:.2f}",
                xticks=[],
                yticks=[],
            )
            ax.title.set_fontsize(9)
        line[0].set_ylabel(kind)
    with rc_context({"svg.hashsalt": "patterns", "svg.fonttype": "none"}):
        figure.savefig(out, metadata={"Date": None})


def compared(rows: Sequence[dict[str, Any]], sample: str) -> dict[str, Any]:
    found = {}
    for kind in (None, *KINDS):
        shown = [row for row in rows if row["sample"] == sample and kind in (None, row["kind"])]
        for one, other in (("eye", "rules"), ("eye", "network"), ("rules", "network")):
            found[f"{one}/{other}" + (f", {kind}" if kind else "")] = agreement(
                [row[one] for row in shown], [row[other] for row in shown]
            )
    return found


def as_text(content: dict[str, Any]) -> str:
    """JSON with a map a line."""
    maps = ",\n".join("    " + json.dumps(row, ensure_ascii=False) for row in content["maps"])
    rest = json.dumps(
        {key: value for key, value in content.items() if key != "maps"}, ensure_ascii=False
    )
    return f'{{"maps": [\n{maps}\n  ],\n{rest[1:]}\n'


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    commands = parser.add_subparsers(dest="command", required=True)
    sheets = commands.add_parser("sheets")
    sheets.add_argument("sample", choices=SAMPLES)
    sheets.add_argument("--out", type=Path, default=Path("sheets"))
    commands.add_parser("compare").add_argument("file", type=Path)
    picture = commands.add_parser("picture")
    picture.add_argument("file", type=Path)
    picture.add_argument("--out", type=Path, default=Path("patterns.svg"))
    options = parser.parse_args()
    torch.set_num_threads(1)
    maps = Maps(options.data)
    if options.command == "sheets":
        draw_sheets(maps, maps.sample(options.sample), options.out)
    elif options.command == "picture":
        draw_picture(maps, options.file, options.out)
    else:
        content = compare(maps, options.file)
        options.file.write_text(as_text(content), "utf-8")
        print(json.dumps(content["agreement"], indent=1))


if __name__ == "__main__":
    main()
