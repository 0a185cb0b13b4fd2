"""Writes docs/results/translation.md, its figures and its numbers from measured runs.

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
from statistics import fmean
from typing import Any

from litotes.core.figures import render_figure
from litotes.data.parallel import load_parallel
from litotes.training.translation.attention_statistics import KINDS
from reproduction.paragraphs import paragraph
from reproduction.sign_numbers import shown_outputs, summarise_sign
from reproduction.sign_page import sign_lines
from reproduction.translation_figure import draw, figure_name
from reproduction.translation_findings import density_range, findings, signed
from reproduction.translation_numbers import BASELINE, NAMES, summarise

ROOT = Path(__file__).parent.parent
NEARLY_DENSE = 0.9
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
    for direction, found in numbers["multi30k"].items():
        (folder / figure_name(direction)).write_bytes(render_figure(draw(found), "svg"))
    (given.docs / "translation.md").write_text(page(numbers), "utf-8")


def collect(results: Path, multi30k: str, sign: str | None, most: int | None) -> dict[str, Any]:
    """All numbers of the page."""
    runs = read_runs(results / "multi30k.json")
    numbers: dict[str, Any] = {"multi30k": {}, "device": runs[0]["device"]}
    numbers["recipe"] = {name: runs[0]["recipe"][name] for name in ("model", "training", "search")}
    for direction in DIRECTIONS:
        some = [run for run in runs if run["direction"] == direction]
        start, end = direction.split("-")
        test = load_parallel(f"multi30k:{multi30k}?from={start}&to={end}").test[:most]
        if some:
            numbers["multi30k"][direction] = summarise(some, test)
    if (results / "time.json").is_file():
        timed = json.loads((results / "time.json").read_text("utf-8"))
        numbers["time"] = {name: timed[name] for name in ("device", "turns", "seconds_a_step")}
    if sign is not None and (results / "sign.json").is_file():
        from litotes.prediction.predictor import Predictor

        runs = read_runs(results / "sign.json")
        test = load_parallel(f"sign:{sign}").test[:most]
        numbers["sign"] = summarise_sign(runs, test, Predictor.load("builtin@1", device="cpu"))
        numbers["shown"] = shown_outputs(runs, test)
    return numbers


def read_runs(file: Path) -> list[dict[str, Any]]:
    runs: list[dict[str, Any]] = json.loads(file.read_text("utf-8"))["runs"]
    return runs


def page(numbers: Mapping[str, Any]) -> str:
    directions = numbers["multi30k"]
    lines = [
        "# Translation with sparse attention",
        "",
        *_lead(directions),
        *_time_lines(numbers),
        *_figure_lines(directions),
        *_score_lines(directions),
        *_published_lines(directions),
        "## Attention",
        "",
        *_attention_lines(directions),
        "## Which of the paper's findings hold",
        "",
        *findings(directions),
        *sign_lines(numbers),
        "## How it was done",
        "",
        *_method_lines(numbers),
    ]
    return "\n".join(lines).rstrip() + "\n"


def _lead(directions: Mapping[str, Any]) -> list[str]:
    """What came out, a sentence for each weighting."""
    first = next(iter(directions.values()))
    n = min(len(one["seeds"]) for one in first.values())
    lines = [
        paragraph(
            "What does it cost a translator that every attention (encoder, decoder, across) may"
            " give a word a weight of exactly 0, as in Correia, Niculae & Martins (2019, arXiv"
            f" 1909.00015)? Multi30k, test of 2016, trained from scratch, {n} seeds; differences"
            " to softmax in BLEU, with 95 % over texts:"
        ),
        "",
    ]
    for weighting in [name for name in first if name != BASELINE]:
        moved = [
            f"{signed(found[weighting]['difference']['bleu'])} {DIRECTIONS[direction]}"
            for direction, found in directions.items()
            if found.get(weighting, {}).get("difference")
        ]
        low, high = density_range(directions.values(), weighting)
        said = f"**{NAMES[weighting]}**: {', '.join(moved)}; {low:.2f} to {high:.2f} of the keys"
        said += " get weight, by kind of attention."
        if low > NEARLY_DENSE:
            said += " It ends near softmax, and so says little about what sparsity costs."
        lines.append(paragraph(said, bullet=True))
    return [*lines, ""]


def _figure_lines(directions: Mapping[str, Any]) -> list[str]:
    lines = []
    for direction, title in DIRECTIONS.items():
        if direction in directions:
            said = f"Density, diversity and α by layer, {title}"
            lines += [f"![{said}](translation/{figure_name(direction)})", ""]
    return lines


def _method_lines(numbers: Mapping[str, Any]) -> list[str]:
    training, model = numbers["recipe"]["training"], numbers["recipe"]["model"]
    first = next(iter(numbers["multi30k"].values()))
    n_weights = next(iter(first.values()))["n_weights"]
    n = min(len(one["seeds"]) for one in first.values())
    multi30k = "python -m reproduction.translation multi30k --data DATA/multi30k --out OUT"
    write = "python -m reproduction.translation_page --results OUT --multi30k DATA/multi30k"
    has_sign, timed = "sign" in numbers, "time" in numbers
    sign = "python -m reproduction.translation sign --data DATA/sarcasm-sign --out OUT --seeds 3"
    clock = "python -m reproduction.translation time --data DATA/multi30k --out OUT"
    return [
        "```",
        *([clock] if timed else []),
        f"{multi30k} --seeds {n}",
        *([sign] if has_sign else []),
        write + (" --sign DATA/sarcasm-sign" if has_sign else ""),
        "```",
        "",
        paragraph(
            f"On {numbers['device']}: {model['n_layers']} + {model['n_layers']} layers, width"
            f" {model['width']}, {n_weights / 1e6:.1f} million weights, {training['epochs']}"
            f" epochs, the mean of the last {training['averaged']},"
            f" {numbers['recipe']['search']['beams']} beams. The weightings differ in nothing"
            " else. Settings were fixed before the test texts were read. Intervals over seeds are"
            " Student's, those of differences paired by seed; intervals over texts are bootstraps"
            " of the mean over seeds. BLEU and chrF are sacrebleu's, with case. All numbers:"
            " [translation.json](translation/translation.json)."
        ),
    ]


def _score_lines(directions: Mapping[str, Any]) -> list[str]:
    lines = []
    for direction, by_weighting in directions.items():
        lines += [
            f"## {DIRECTIONS[direction]}",
            "",
            "| weighting | seeds | BLEU (95 % over seeds) | less softmax (95 % over texts)"
            " | 95 % over seeds | chrF | validation loss |",
            "|---|---|---|---|---|---|---|",
        ]
        for weighting, one in by_weighting.items():
            moved = one["difference"]
            less = " | " if moved is None else _both_intervals(moved["bleu"])
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


def _both_intervals(moved: Mapping[str, Any]) -> str:
    """Two cells: the difference with its interval over texts, and that over seeds."""
    over = moved["over_seeds"]
    return f"{signed(moved)} | " + ("" if over is None else f"{over[0]:+.2f} to {over[1]:+.2f}")


def _published_lines(directions: Mapping[str, Any]) -> list[str]:
    if BASELINE not in directions.get("en-de", {}):
        return []
    ours = directions["en-de"][BASELINE]["bleu"]["mean"]
    return [
        paragraph(
            "Small text-only Transformers are reported at about 41 BLEU into German on this test,"
            f" mostly counted on tokenised text; softmax has {ours:.1f} here, where sacrebleu"
            " tokenises."
        ),
        "",
    ]


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
        paragraph(
            f"A training step, alone on {numbers['time']['device']}, the median of three turns:"
            f" {', '.join(parts)}."
        ),
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
                    f"| {direction} | {NAMES[weighting]} | {kind} | {fmean(density):.2f} |"
                    f" {fmean(diversity):.2f} | {_alpha(attention['alpha'][kind])} |"
                )
    return [*lines, ""]


def _alpha(by_layer: Sequence[Sequence[float]]) -> str:
    values = [value for layer in by_layer for value in layer]
    if not values:
        return ""
    if min(values) == max(values):
        return f"{values[0]:.2f}"
    return f"{fmean(values):.2f} ({min(values):.2f} to {max(values):.2f})"


if __name__ == "__main__":
    main()
