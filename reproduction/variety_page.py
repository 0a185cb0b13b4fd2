"""Writes what `variety_stress` found into docs/results/stress.md, with its figure.

    python -m reproduction.variety_page OUT/variety_stress.json [--machine "one NVIDIA H200"]

The section between the two comments is written anew; JSON and figure lie beside the others.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from litotes.core.figures import BAR, GAP, INK, save_figure
from litotes.core.storage import write_text
from litotes.evaluation.significance import SIGNIFICANT
from reproduction.paragraphs import paragraph, replace_between, signed_interval, table_lines

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PAGE = Path("docs/results/stress.md")
BEGIN, END = "<!-- varieties: written by reproduction/variety_page.py -->", "<!-- /varieties -->"
BEFORE = "## What is not shown"
N_FEATURES = 12
Rows = Sequence[Mapping[str, Any]]


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("file", type=Path)
    parser.add_argument("--page", type=Path, default=PAGE)
    parser.add_argument("--machine", default="")
    options = parser.parse_args(words)
    content = json.loads(options.file.read_text("utf-8"))
    stem = options.page.with_suffix("") / "varieties"
    save_figure(stem, figure(content), content, with_png=False)
    page = options.page.read_text("utf-8")
    write_text(options.page, replace_section(page, section(content, options.machine)))


def replace_section(page: str, text: str) -> str:
    """The page with the section in its place: between the comments, or before the last heading."""
    if BEGIN not in page:
        before, heading, rest = page.partition(BEFORE)
        page = f"{before}{BEGIN}\n{END}\n\n{heading}{rest}"
    return replace_between(page, BEGIN, END, text)


def section(content: Mapping[str, Any], machine: str) -> str:
    """The whole section as Markdown."""
    lines = ["", "## Models that know one variety", ""]
    lines += ["![Training with features, and its effect](stress/varieties.svg)", ""]
    lines += ["```", "python -m reproduction.variety_stress --besstie PATH --encoder minilm \\"]
    lines += [
        "  --encoder mpnet=FOLDER --out runs/variety_stress --workers 12 --device cuda",
        "```",
    ]
    lines += ["", paragraph(_setup(content, machine)), ""]
    lines += ["**In short:**", ""]
    for sentence in findings(content):
        lines.append(paragraph(sentence, bullet=True))
    lines += ["", "### On real texts of every variety", "", *_real_table(content), ""]
    lines += ["### Under features", "", *_pooled_table(content), ""]
    about = paragraph(
        "Home: features that are common where the model was trained; foreign: those that are"
        " common in another variety and not there. Pooled over features, texts and seeds, on texts"
        " that have a control; intervals draw whole texts and cover other seeds."
    )
    lines += [about, "", *_feature_table(content), ""]
    return "\n".join(lines)


def findings(content: Mapping[str, Any]) -> Iterator[str]:
    """What came out, in sentences that follow from the numbers."""
    for row in _where(content["gaps"], what="elsewhere"):
        verdict = _verdict(row["difference"], "helps", "hurts", "makes no clear difference")
        gap = next(_where(content["gaps"], what="gap", **_place(row)))
        yield (
            f"{row['encoder']}, {row['task']}: elsewhere macro-F1 is {_plain(row['plain'])} plain"
            f" and {_plain(row['augmented'])} with features,"
            f" {signed_interval(row['difference'])}: training with features {verdict}. The gap"
            f" between home and elsewhere is {_plain(gap['plain'])}, and changes by"
            f" {signed_interval(gap['difference'])}."
        )
    for row in _where(content["training"], features="foreign", trained_on="all"):
        yield (
            f"{row['encoder']}, {row['task']}: under foreign features augmented models change"
            f" {signed_interval(row['flips'], 100)} points more of their answers than plain ones,"
            f" under controls {signed_interval(row['control'], 100)}."
        )
    n_cells = sum(row["adjusted_p"] < SIGNIFICANT for row in content["real"])
    yield (
        f"Of {len(content['real'])} cells (trained here, tested there), {n_cells or 'none'} change"
        " significantly with augmentation after Holm's correction."
    )
    plain = list(_where(content["features"], kind="plain"))
    worse = [row for row in plain if _is_worse(row)]
    named = ", ".join(f"`{row['rewrite']}` ({row['encoder']}, {row['task']})" for row in worse)
    yield (
        f"Of {len(plain)} tests of a feature against its control, plain models fail"
        f" {len(worse) or 'none'}{': ' if named else ''}{named}."
    )


def figure(content: Mapping[str, Any]) -> Figure:
    """Left what training with features does on real texts, right how often features flip."""
    from matplotlib.figure import Figure  # takes half a second; only pictures need it

    n_models = len(content["seeds"])
    picture = Figure(figsize=(9.6, 1.6 + 0.62 * n_models), layout="constrained")
    left, right = picture.subplots(1, 2)
    for place, models in enumerate(content["seeds"]):
        for step, what in ((-0.15, "home"), (0.15, "elsewhere")):
            row = next(_where(content["gaps"], what=what, **_place(models)))
            _draw(left, row["difference"], place + step, what, INK if what == "home" else GAP)
        for step, kind in ((-0.15, "plain"), (0.15, "augmented")):
            wanted = {"features": "foreign", "trained_on": "all", "kind": kind}
            row = next(_where(content["pooled"], **wanted, **_place(models)))
            _draw(right, row["difference"], place + step, kind, INK if kind == "plain" else BAR)
    names = [f"{models['encoder']}, {models['task']}" for models in content["seeds"]]
    _finish(left, names, "macro-F1 with features less plain")
    _finish(right, names, "foreign features: flips less control, points")
    right.set_yticklabels([])
    return picture


def _draw(ax: Axes, estimate: Mapping[str, Any], place: float, name: str, colour: str) -> None:
    scale = 1 if ax.get_subplotspec().is_first_col() else 100
    low, high = (scale * end for end in estimate["interval"])
    label = name if place < 0.5 else None
    ax.plot([low, high], [place, place], color=colour, linewidth=1.4)
    ax.plot([scale * estimate["value"]], [place], "o", color=colour, label=label)


def _finish(ax: Axes, names: Sequence[str], title: str) -> None:
    ax.axvline(0, color=INK, linewidth=0.6, linestyle="--")
    ax.set_yticks(range(len(names)), names)
    ax.set_ylim(len(names) - 0.5, -0.5)
    ax.locator_params(axis="x", nbins=5)  # more would touch one another
    ax.set_xlabel(f"{title} (95 % interval)", fontsize=9)
    ax.legend(frameon=False, fontsize=8, loc="upper center", bbox_to_anchor=(0.5, 1.18), ncols=2)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)


def _setup(content: Mapping[str, Any], machine: str) -> str:
    seeds = ", ".join(
        f"{one['encoder']} {one['task']} {len(one['seeds'])}" for one in content["seeds"]
    )
    training = content["recipe"]["training"]
    return (
        "Each encoder was trained on the Reddit comments of one variety of BESSTIE, plain and with"
        " half of the training texts rewritten by features that are common in the other two"
        " (`data.rewrites`). Every model answered the real validation comments of every variety,"
        f" and {content['n_cases']:,} rewrites of {content['n_texts']:,} of them with their"
        f" controls. {content['n_runs']} runs (seeds: {seeds}), {training['epochs']} epochs,"
        f" batches of {training['batch_texts']}{f', on {machine}' if machine else ''}. Settings are"
        " those of `reproduction/study_encoders.toml`. Numbers: [varieties.json]"
        "(stress/varieties.json)."
    )


def _real_table(content: Mapping[str, Any]) -> list[str]:
    head = "| encoder | task | trained on | tested on | n | plain | with features | difference |"
    rows = []
    for row in content["real"]:
        names = (row["encoder"], row["task"], row["trained_on"], row["tested_on"], str(row["n"]))
        rows.append((*names, *_scores(row), f"{row['adjusted_p']:.3f}"))
    means = [
        (row["encoder"], row["task"], "mean", row["what"], "", *_scores(row), "")
        for row in content["gaps"]
    ]
    return table_lines(f"{head} p corrected |", [*rows, *means])


def _scores(row: Mapping[str, Any]) -> tuple[str, ...]:
    return _plain(row["plain"]), _plain(row["augmented"]), signed_interval(row["difference"])


def _pooled_table(content: Mapping[str, Any]) -> list[str]:
    head = "| encoder | task | features | trained on | models | flips, % | control, % |"
    rows = []
    for row in content["pooled"]:
        names = (row["encoder"], row["task"], row["features"], row["trained_on"], row["kind"])
        shares = (f"{100 * row['flips']['value']:.1f}", f"{100 * row['control']['value']:.1f}")
        rows.append((*names, *shares, signed_interval(row["difference"], 100)))
    return table_lines(f"{head} less control, points |", rows)


def _feature_table(content: Mapping[str, Any]) -> list[str]:
    """The features that plain models mind most, by encoder and task."""
    head = "| encoder | task | feature | common in | texts | flips, % | control, % |"
    rows = []
    for models in content["seeds"]:
        own = list(_where(content["features"], kind="plain", **_place(models)))
        own.sort(key=lambda row: -row["difference"]["value"])
        for row in own[:N_FEATURES]:
            names = (row["encoder"], row["task"], f"`{row['rewrite']}`")
            where = ", ".join(row["common_in"])
            shares = (str(row["n"]), f"{100 * row['flips']:.1f}", f"{100 * row['control']:.1f}")
            tests = (f"{row['p']:.4f}", f"{row['adjusted_p']:.3f}")
            rows.append((*names, where, *shares, signed_interval(row["difference"], 100), *tests))
    return table_lines(f"{head} less control, points | p | p corrected |", rows)


def _where(rows: Rows, **wanted: str) -> Iterator[Mapping[str, Any]]:
    for row in rows:
        if all(row[key] == value for key, value in wanted.items()):
            yield row


def _place(row: Mapping[str, Any]) -> dict[str, str]:
    return {"encoder": row["encoder"], "task": row["task"]}


def _is_worse(row: Mapping[str, Any]) -> bool:
    return bool(row["adjusted_p"] < SIGNIFICANT and row["difference"]["value"] > 0)


def _verdict(estimate: Mapping[str, Any], up: str, down: str, neither: str) -> str:
    low, high = estimate["interval"]
    return up if low > 0 else down if high < 0 else neither


def _plain(estimate: Mapping[str, Any]) -> str:
    low, high = estimate["interval"]
    return f"{estimate['value']:.3f} ({low:.3f} to {high:.3f})"


if __name__ == "__main__":
    main()
