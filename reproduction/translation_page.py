"""Writes docs/results/translation.md, its figure and its numbers from measured runs.

python -m reproduction.translation_page --results OUT --multi30k DATA/multi30k \
    --sign DATA/sarcasm-sign

OUT: where `reproduction.translation` left multi30k.json, and maybe sign.json and time.json. What
was not measured is not on the page.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from litotes.core.harmless import markdown
from litotes.data.parallel import load_parallel
from litotes.report.figure import BAR, GAP, INK, render_figure
from litotes.translation.attention_statistics import KINDS
from reproduction.translation_numbers import BASELINE, shown_outputs, summarise, summarise_sign

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ROOT = Path(__file__).parent.parent
NAMES = {
    "softmax": "softmax",
    "entmax": "1.5-entmax",
    "learned": "learned α",
    "plain": "softmax, and plain texts stay",
    "minilm": "the same around `minilm`",
}
COLOURS = {"softmax": INK, "entmax": BAR, "learned": GAP}
DIRECTIONS = {"de-en": "German → English", "en-de": "English → German"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--results", type=Path, required=True)
    parser.add_argument("--multi30k", required=True)
    parser.add_argument("--sign")
    parser.add_argument("--docs", type=Path, default=ROOT / "docs" / "results")
    parser.add_argument("--most-texts", type=int, help="as in a trial of the study")
    given = parser.parse_args()
    numbers = collect(given.results, given.multi30k, given.sign, given.most_texts)
    folder = given.docs / "translation"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "translation.json").write_text(json.dumps(numbers, indent=1, ensure_ascii=False))
    figure = draw(next(iter(numbers["multi30k"].values())))
    (folder / "attention.svg").write_bytes(render_figure(figure, "svg"))
    (given.docs / "translation.md").write_text(page(numbers), "utf-8")


def collect(results: Path, multi30k: str, sign: str | None, most: int | None) -> dict[str, Any]:
    """All numbers of the page."""
    runs = read_runs(results / "multi30k.json")
    numbers: dict[str, Any] = {"multi30k": {}, "device": runs[0]["device"]}
    numbers["recipe"], numbers["processes"] = runs[0]["recipe"], runs[0]["processes"]
    for direction in DIRECTIONS:
        some = [run for run in runs if run["direction"] == direction]
        start, end = direction.split("-")
        test = load_parallel(f"multi30k:{multi30k}?from={start}&to={end}").test[:most]
        if some:
            numbers["multi30k"][direction] = summarise(some, test)
    if (results / "time.json").is_file():
        numbers["time"] = json.loads((results / "time.json").read_text("utf-8"))
    if sign is not None and (results / "sign.json").is_file():
        from litotes.prediction.predictor import Predictor

        runs = read_runs(results / "sign.json")
        test = load_parallel(f"sign:{sign}").test[:most]
        numbers["sign"] = summarise_sign(runs, test, Predictor.load("builtin", device="cpu"))
        numbers["shown"] = shown_outputs(runs, test)
    return numbers


def read_runs(file: Path) -> list[dict[str, Any]]:
    runs: list[dict[str, Any]] = json.loads(file.read_text("utf-8"))["runs"]
    return runs


def page(numbers: Mapping[str, Any]) -> str:
    training, model = numbers["recipe"]["training"], numbers["recipe"]["model"]
    first = next(iter(numbers["multi30k"].values()))
    n_weights = next(iter(first.values()))["n_weights"]
    n = min(len(one["seeds"]) for one in first.values())
    lines = [
        "# Translation with sparse attention",
        "",
        "![Density, diversity and α by layer and kind of attention](translation/attention.svg)",
        "",
        "```",
        f"python -m reproduction.translation multi30k --data DATA/multi30k --out OUT --seeds {n}",
        *_sign_command(numbers),
        "```",
        "",
        f"Multi30k, test of 2016, from scratch on {numbers['device']}: {model['n_layers']} + "
        f"{model['n_layers']} layers, width {model['width']},",
        f"{n_weights / 1e6:.1f} million weights, {training['epochs']} epochs, the mean of the last "
        f"{training['averaged']}, {numbers['recipe']['search']['beams']} beams. Settings were",
        "fixed before the test texts were read. Numbers:",
        "[translation.json](translation/translation.json).",
        "",
        "The three differ in nothing but how every attention (encoder, decoder, across) turns",
        "affinities into weights (Correia, Niculae & Martins 2019, arXiv 1909.00015).",
        "",
        *_score_lines(numbers["multi30k"]),
        "Small text-only Transformers are reported at about 41 BLEU into German, mostly counted on",
        "tokenised text; here sacrebleu tokenises, with case.",
        "",
        *_time_lines(numbers),
        "## Attention",
        "",
        *_attention_lines(numbers["multi30k"]),
        *_sign_lines(numbers),
    ]
    return "\n".join(lines).rstrip() + "\n"


def _score_lines(directions: Mapping[str, Any]) -> list[str]:
    lines = []
    for direction, by_weighting in directions.items():
        lines += [
            f"## {DIRECTIONS[direction]}",
            "",
            "| weighting | seeds | BLEU (95 % over seeds) | less softmax (95 % over texts)"
            " | chrF | validation loss |",
            "|---|---|---|---|---|---|",
        ]
        for weighting, one in by_weighting.items():
            moved = one["difference"]
            less = "" if moved is None else _signed(moved["bleu"])
            lines.append(
                f"| {NAMES[weighting]} | {len(one['seeds'])} | {_with_interval(one['bleu'])} |"
                f" {less} | {one['chrf']['mean']:.1f} | {one['valid_loss']:.3f} |"
            )
        lines.append("")
    return lines


def _with_interval(score: Mapping[str, Any]) -> str:
    if score["interval"] is None:
        return f"{score['mean']:.1f}"
    low, high = score["interval"]
    return f"{score['mean']:.1f} ({low:.1f} to {high:.1f})"


def _signed(moved: Mapping[str, Any]) -> str:
    low, high = moved["interval"]
    return f"{moved['value']:+.1f} ({low:+.1f} to {high:+.1f})"


def _time_lines(numbers: Mapping[str, Any]) -> list[str]:
    if "time" not in numbers:
        return []
    seconds = numbers["time"]["seconds_a_step"]
    base = seconds[BASELINE]
    parts = [
        f"{NAMES[name]} {1000 * value:.1f} ms ({value / base:.2f} times)"
        for name, value in seconds.items()
    ]
    return [
        f"A training step alone on {numbers['time']['device']}, the median of three turns:",
        f"{', '.join(parts)}.",
        "",
    ]


def _attention_lines(directions: Mapping[str, Any]) -> list[str]:
    lines = [
        "Means over layers, attention heads and seeds, on the validation texts: density, the share",
        "of the readable keys that get weight; diversity, the Jensen-Shannon divergence between",
        "the heads of a layer in bits; α as learned, with the range over heads (all begin at 1.2).",
        "",
        "| direction | weighting | kind | density | diversity | α |",
        "|---|---|---|---|---|---|",
    ]
    for direction, by_weighting in directions.items():
        for weighting, one in by_weighting.items():
            for kind in KINDS:
                attention = one["attention"]
                density, diversity = attention["density"][kind], attention["diversity"][kind]
                lines.append(
                    f"| {direction} | {NAMES[weighting]} | {kind} | {_mean(density):.2f} |"
                    f" {_mean(diversity):.2f} | {_alpha(attention['alpha'][kind])} |"
                )
    return [*lines, "", *_findings(directions)]


def _alpha(by_layer: Sequence[Sequence[float]]) -> str:
    values = [value for layer in by_layer for value in layer]
    if not values:
        return ""
    return f"{_mean(values):.2f} ({min(values):.2f} to {max(values):.2f})"


def _findings(directions: Mapping[str, Any]) -> list[str]:
    """What the paper found, and whether it holds here; counted, not judged."""
    lines = ["Of the paper's findings:", ""]
    for direction, found in directions.items():
        if BASELINE not in found:
            continue
        for weighting in [name for name in found if name != BASELINE]:
            low, high = found[weighting]["difference"]["bleu"]["interval"]
            cost = "no cost in BLEU is seen" if low <= 0 <= high else "BLEU differs"
            better, n_layers = _count_more_diverse(found[weighting], found[BASELINE])
            lines.append(
                f"- {direction}, {NAMES[weighting]}: {cost}; heads differ more than with softmax in"
            )
            lines.append(f"  {better} of {n_layers} attentions.")
    return [*lines, ""]


def _count_more_diverse(one: Mapping[str, Any], other: Mapping[str, Any]) -> tuple[int, int]:
    pairs = []
    for kind in KINDS:
        mine, theirs = one["attention"]["diversity"][kind], other["attention"]["diversity"][kind]
        pairs += list(zip(mine, theirs, strict=True))
    return sum(mine > theirs for mine, theirs in pairs), len(pairs)


def _sign_lines(numbers: Mapping[str, Any]) -> list[str]:
    if "sign" not in numbers:
        return []
    found = numbers["sign"]
    lines = [
        "## What was meant: Sarcasm SIGN",
        "",
        "Sarcastic tweets and five people's interpretations of each (Peled and Reichart 2017),",
        f"divided by tweet; {found['people']['n']} test tweets, all references at once. The line to"
        " beat is saying",
        "the tweet again. The sentiment is that of the built-in model: how often an output turns",
        "the tweet's, and how often it has that of most interpretations, which turn it in"
        f" {100 * found['people']['flipped']:.0f} %.",
        "",
        "| | BLEU | chrF | changed, % | sentiment turned, % | sentiment as people's, % |",
        "|---|---|---|---|---|---|",
    ]
    for name, one in found.items():
        if name == "people":
            continue
        scores = [_mean_score(one, metric) for metric in ("bleu", "chrf")]
        shares = [f"{100 * one[share]:.0f}" for share in ("changed", "flipped", "agrees")]
        label = "the tweet again" if name == "copy" else NAMES[name]
        lines.append(f"| {label} | {scores[0]:.1f} | {scores[1]:.1f} | {' | '.join(shares)} |")
    lines += ["", *_against_copying(found), ""]
    lines += [f"{len(numbers['shown'])} outputs drawn by chance, as they came (seed 0):", ""]
    columns = [name for name in numbers["shown"][0] if name not in ("text", "people")]
    lines.append(f"| tweet | a person | {' | '.join(NAMES[name] for name in columns)} |")
    lines.append("|---|---|" + "---|" * len(columns))
    for one in numbers["shown"]:
        cells = [markdown(one[name]) for name in ("text", "people", *columns)]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def _mean_score(one: Mapping[str, Any], metric: str) -> Any:
    """Of all seeds; the tweet itself has a value alone."""
    return one[metric].get("mean", one[metric].get("value"))


def _sign_command(numbers: Mapping[str, Any]) -> list[str]:
    page = "python -m reproduction.translation_page --results OUT --multi30k DATA/multi30k"
    if "sign" not in numbers:
        return [page]
    sign = "python -m reproduction.translation sign --data DATA/sarcasm-sign --out OUT --seeds 3"
    return [sign, f"{page} --sign DATA/sarcasm-sign"]


def _against_copying(found: Mapping[str, Any]) -> list[str]:
    """Which models beat the tweet itself, by each measure."""
    models = [name for name in found if name not in ("people", "copy")]
    copied = found["copy"]
    said = []
    measures = {
        "BLEU": lambda one: _mean_score(one, "bleu"),
        "chrF": lambda one: _mean_score(one, "chrf"),
        "people's sentiment": lambda one: one["agrees"],
    }
    for title, measure in measures.items():
        better = [NAMES[name] for name in models if measure(found[name]) > measure(copied)]
        who = f"better than the tweet itself are {', '.join(better)}" if better else ""
        said.append(f"- By {title} {who or 'no model is better than the tweet itself'}.")
    return said


def draw(found: Mapping[str, Any]) -> Figure:
    """Density and diversity by layer for each kind of attention, and α of every head."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    picture = Figure(figsize=(8.6, 6.4), layout="constrained")
    axes = picture.subplots(3, 3, sharex=True, sharey="row")
    for column, kind in enumerate(KINDS):
        for row, what in enumerate(("density", "diversity")):
            ax = axes[row][column]
            for weighting, one in found.items():
                values = one["attention"][what][kind]
                places = range(1, len(values) + 1)
                colour, label = COLOURS[weighting], NAMES[weighting]
                ax.plot(places, values, "o-", color=colour, label=label, markersize=4)
        alpha = found.get("learned", {"attention": {"alpha": {kind: []}}})["attention"]["alpha"]
        for layer, values in enumerate(alpha[kind], start=1):
            axes[2][column].plot([layer] * len(values), values, "_", color=GAP, markersize=9)
        axes[2][column].axhline(1.2, color=INK, linestyle="--", linewidth=0.8)
        axes[0][column].set_title(kind, fontsize=10)
        axes[2][column].set_xlabel("layer")
        axes[2][column].xaxis.set_major_locator(MaxNLocator(integer=True))
    for ax, label in zip(axes[:, 0], ("density", "diversity, bits", "α by head"), strict=True):
        ax.set_ylabel(label)
    for ax in axes.flat:
        for side in ("top", "right"):
            ax.spines[side].set_visible(False)
    axes[0][0].legend(frameon=False, fontsize=8)
    return picture


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


if __name__ == "__main__":
    main()
