"""A forest plot of slices: how many more mistakes inside than outside, on either half."""

from __future__ import annotations

from typing import TYPE_CHECKING

from litotes.core.figures import BAR, GAP, INK
from litotes.evaluation.slices.search import Slice, Slices

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_ROW = 0.26  # inches


def figure(found: Slices) -> Figure:
    """A panel for each task that has slices; one empty panel where none has."""
    from matplotlib.figure import Figure  # takes half a second; only pictures need it

    by_task: dict[str, list[Slice]] = {}
    for one in found.slices:
        by_task.setdefault(one.task, []).append(one)
    panels = by_task or {"no slice was kept": []}
    n_rows = max(map(len, panels.values()))
    picture = Figure(figsize=(5.4 * len(panels), _ROW * n_rows + 1.7), layout="constrained")
    axes = picture.subplots(1, len(panels), squeeze=False)[0]
    for (task, slices), ax in zip(panels.items(), axes, strict=True):
        draw(slices, ax, title=task)
    handles, labels = axes[0].get_legend_handles_labels()
    named = dict(zip(labels, handles, strict=True))
    picture.legend(
        list(named.values()),
        list(named),
        loc="outside lower center",
        ncols=3,
        frameon=False,
        fontsize=8,
    )
    return picture


def draw(slices: list[Slice], ax: Axes, *, title: str) -> None:
    """Draws the slices of one task into given axes, the surest at the top."""
    for place, one in enumerate(slices):
        colour = GAP if one.is_confirmed else BAR
        label = "second half: confirmed" if one.is_confirmed else "second half: not confirmed"
        low, high = (100 * end for end in one.interval)
        ax.plot([low, high], [place, place], color=colour, linewidth=1.4)
        ax.plot([100 * one.difference], [place], "o", color=colour, label=label)
        ax.plot([100 * one.searched], [place], "x", color=INK, label="first half: as found")
    names = [f"{one.kind} {one.name} ({one.n[0]})" for one in slices]
    ax.axvline(0, color=INK, linewidth=0.6, linestyle="--")
    ax.set_yticks(range(len(slices)), names, fontsize=8, parse_math=False)
    ax.set_ylim(max(len(slices), 1) - 0.4, -0.6)
    ax.set_xlabel("mistakes inside less outside, points")
    ax.set_title(title, fontsize=11, parse_math=False)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
