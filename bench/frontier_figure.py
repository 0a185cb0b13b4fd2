"""The figure of frontier.py: macro-F1 against times as fast as ONNX Runtime int8, by corpus."""

from __future__ import annotations

from typing import Any

from matplotlib.figure import Figure

from litotes.core.figures import INK, render_figure

MARKS = {"": "o", "exits": "^", "static": "s", "all": "D", "all-2": "P"}
NAMES = {"": "as it is", "exits": "exits", "static": "table", "all": "both", "all-2": "both, 2 %"}
COLOURS = {"dense": "#0072B2", "pruned": "#D55E00"}
"""From the palette of Okabe and Ito; hollow by torch, filled by ONNX int8."""


def draw_frontier(result: dict[str, Any]) -> bytes:
    """The SVG of frontier.json."""
    corpora = result["corpora"]
    picture = Figure(figsize=(5.2 * len(corpora), 4.6), layout="constrained")
    axes = picture.subplots(1, len(corpora), squeeze=False)[0]
    for ax, (corpus, measured) in zip(axes, corpora.items(), strict=True):
        dense = next(row for row in measured["lines"] if row["name"] == "dense torch")
        ax.axhline(dense["macro_f1"] - 0.5, color=INK, linestyle="--", linewidth=1)
        ax.axvline(4, color=INK, linestyle=":", linewidth=1)
        for row in measured["lines"]:
            _draw(ax, row)
        ax.set_title(corpus)
        ax.set_xlabel("times as fast as ONNX Runtime int8 with our scheduling")
        for side in ("top", "right"):
            ax.spines[side].set_visible(False)
    axes[0].set_ylabel("macro-F1, points; dashed: dense less half a point")
    handles, labels = {}, []
    for ax in axes:
        for handle, label in zip(*ax.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    labels = list(handles)
    picture.legend(
        [handles[label] for label in labels],
        labels,
        loc="outside lower center",
        ncols=4,
        frameon=False,
        fontsize=8,
    )
    return render_figure(picture, "svg")


def _draw(ax: Any, row: dict[str, Any]) -> None:
    """One line, with the quartiles of its ratio."""
    if row["ratio"] is None:
        ax.plot([1], [row["macro_f1"]], "X", color=INK, markersize=9, label="ONNX Runtime int8")
        return
    variant, _, runtime = row["name"].partition(" ")
    kind, _, own = variant.partition("-")
    ratio = row["ratio"]
    spread = [[ratio["middle"] - ratio["low"]], [ratio["high"] - ratio["middle"]]]
    colour = COLOURS[kind]
    ax.errorbar(
        [ratio["middle"]],
        [row["macro_f1"]],
        xerr=spread,
        fmt=MARKS[own],
        color=colour,
        markersize=7,
        markerfacecolor=colour if runtime == "onnx" else "white",
        markeredgecolor=colour,
        linewidth=1,
        label=f"{kind}, {NAMES[own]}, {'torch' if runtime == 'torch' else 'int8'}",
    )
