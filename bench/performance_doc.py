"""Writes the tables and figures of docs/results/performance.md from docs/results/bench.json: see
readme_table.py; its GPU half from docs/results/performance/gpu.json: see gpu_doc.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from gpu_doc import Measured, gpu_figures, gpu_half
from readme_table import ROOT, lines_of, markdown, read, replaced

from litotes.bench.figure import growth_figure, length_figure, parts_figure
from litotes.bench.lines import Line
from litotes.bench.profile import PARTS
from litotes.report.figure import render_figure

FIGURES = ROOT / "docs" / "results" / "performance"
PAGE = ROOT / "docs" / "results" / "performance.md"
Content = Mapping[str, Any]

AIMS = (
    (
        "dense float32 against ONNX Runtime float32, one text at a time",
        "litotes-dense",
        "ort-fp32-1",
        1.1,
    ),
    ("dense int8 against its int8", "litotes-dense-int8", "ort-int8-1", 1.3),
    ("pruned int8 against its int8", "litotes-pruned-int8", "ort-int8-1", 2.0),
    (
        "pruned int8 against Hugging Face, padded, batches of 32",
        "litotes-pruned-int8",
        "hf-padded-32",
        20.0,
    ),
)
"""What was promised before it was measured.

Against ONNX Runtime the closer baseline counts: the one with our scheduling.
"""


def about(content: Content) -> str:
    """The machine, the models and the texts, as sentences."""
    machine, subject = content["machine"], content["subject"]
    libraries = (
        "litotes",
        "torch",
        "onnxruntime",
        "transformers",
        "tokenizers",
        "numpy",
        "entmax",
        "torchjd",
    )
    versions = ", ".join(
        f"{library} {machine[library]}" for library in libraries if library in machine
    )
    pruning = f"{subject['pruning']} {subject['pruning_options'].get('shares', '')}".strip()
    load = " ".join(f"{number:.1f}" for number in machine.get("load_average", []))
    notes = dict.fromkeys(note for group in content["groups"].values() for note in group["notes"])
    return (
        f"{machine['model']} ({machine['processor']}:"
        f" {machine.get('features', 'features unknown')}), {machine['n_cores']} cores,"
        f" {machine.get('memory_gb', '?')} GB; Python {machine['python']}, {versions}. Load before"
        f" the run (1, 5, 15 minutes): {load or 'unknown'}.\n{content['n_texts']} texts of"
        f" {content['data']}, {subject['mean_pieces']:g} pieces on average,"
        f" {subject['most_pieces']} at most. Encoder {subject['encoder']}, head {subject['head']},"
        f" pruning {pruning}. {' '.join(notes)}"
    ).rstrip()


def aims(content: Content) -> str:
    lines = lines_of(content, "classify")
    rows = []
    for words, name, rival, wanted in AIMS:
        ratios = lines.get(name, {}).get("ratios", {})
        for against in (f"{rival}-workers", rival) if rival.startswith("ort") else (rival,):
            if against in ratios:
                found = ratios[against]
                words_now = (
                    f"{words}, our scheduling given to it"
                    if against.endswith("-workers")
                    else words
                )
                rows.append(
                    [
                        words_now,
                        f"{wanted:g}",
                        _ratio(found),
                        "met" if found["middle"] >= wanted else "**missed**",
                    ]
                )
    return markdown(["times as fast", "aim", "measured (quartiles)", ""], rows)


def classify(content: Content) -> str:
    head = [
        "line",
        "texts/s",
        "ms a text (quartiles)",
        "GFLOP a text",
        "of the limit",
        "same labels",
        "times as fast as",
    ]
    n = content["n_texts"]
    rows = [
        [
            f"`{name}`",
            f"{line['per_second']:.1f}",
            f"{line['ms'] / n:.2f} ({line['ms_low'] / n:.2f}–{line['ms_high'] / n:.2f})",
            f"{line['flops'] / n / 1e9:.2f}",
            _percent(line.get("share_of_limit")),
            _percent(line.get("agreement")),
            ", ".join(
                f"{ratio['middle']:.2f} `{other}`" for other, ratio in line["ratios"].items()
            ),
        ]
        for name, line in lines_of(content, "classify").items()
        if not name.startswith("limit")
    ]
    return markdown(head, rows)


def limit(content: Content) -> str:
    rows = []
    for group, cores in (
        ("classify", f"{content['machine']['n_cores']} threads"),
        ("profile", "1 thread"),
    ):
        for name, line in lines_of(content, group).items():
            if name.startswith("limit"):
                rows.append(
                    [
                        name.removeprefix("limit-"),
                        cores,
                        f"{line['flops'] / min(line['ms_all_rounds']) / 1e6:.0f}",
                    ]
                )
    return markdown(["precision", "on", "GFLOP/s in a product of 1024 × 1024 × 1024"], rows)


def latency(content: Content) -> str:
    lines = lines_of(content, "latency")
    lengths = sorted({int(name.split("-n")[1].split("-")[0]) for name in lines})
    head = [
        "milliseconds, median (p99)",
        *(f"{length} pieces" for length in lengths),
        *(f"{length}, all cores" for length in lengths),
    ]
    rows = []
    for who in dict.fromkeys(name.rpartition("-n")[0] for name in lines):
        found = [
            lines.get(f"{who}-n{length}{ending}")
            for ending in ("", "-all-cores")
            for length in lengths
        ]
        rows.append([f"`{who}`", *("" if line is None else _waited(line) for line in found)])
    return markdown(head, rows)


def parts(content: Content) -> str:
    lines = {name: line for name, line in lines_of(content, "profile").items() if "parts" in line}
    length = _usual(
        sorted({int(name.rpartition("-n")[2]) for name in lines}), content["subject"]["mean_pieces"]
    )
    shown = {name: line["parts"] for name, line in lines.items() if name.endswith(f"-n{length}")}
    known = [part for part in PARTS if any(part in found for found in shown.values())]
    head = [
        f"microseconds of a text of {length} pieces",
        *(f"`{name.rpartition('-n')[0]}`" for name in shown),
    ]
    rows = [
        [part.replace("_", "-"), *(_part(found, part) for found in shown.values())]
        for part in known
    ]
    return markdown(
        head,
        [
            *rows,
            ["**all**", *(f"**{1000 * sum(found.values()):.0f}**" for found in shown.values())],
        ],
    )


def length(content: Content) -> str:
    lines = lines_of(content, "profile")
    lengths = sorted({int(name.rpartition("-n")[2]) for name in lines if "-n" in name})
    who = dict.fromkeys(name.rpartition("-n")[0] for name in lines if "-n" in name)
    rows = [
        [f"`{name}`", *(_of_length(lines.get(f"{name}-n{length}")) for length in lengths)]
        for name in who
    ]
    return markdown(["ms of one text, one thread (of the limit)", *map(str, lengths)], rows)


def growth(content: Content) -> str:
    rows = []
    for name, line in lines_of(content, "growth").items():
        compared = ", ".join(
            f"{ratio['middle']:.2f} `{other}`" for other, ratio in line["ratios"].items()
        )
        rows.append([f"`{name}`", f"{line['per_second']:.1f}", compared])
    return markdown(["line", "texts/s", "times as fast as"], rows)


def others(content: Content) -> str:
    rows = []
    for group in ("entmax", "effective", "pcgrad", "attention", "train"):
        for name, line in lines_of(content, group).items():
            compared = ", ".join(
                f"{_ratio(ratio)} `{other}`"
                for other, ratio in line["ratios"].items()
                if other != name
            )
            rows.append([group, f"`{name}`", f"{line['ms']:.4g}", compared])
    return markdown(["group", "line", "ms", "times as fast as (quartiles)"], rows)


TABLES: dict[str, Callable[[Content], str]] = {
    "about": about,
    "aims": aims,
    "classify": classify,
    "limit": limit,
    "latency": latency,
    "parts": parts,
    "length": length,
    "growth": growth,
    "others": others,
}


def page_of(page: str, content: Content, gpu: Measured | None) -> str:
    """The page with all its tables made again. gpu: what was measured on a GPU, if anything."""
    for name, table in TABLES.items():
        page = replaced(page, name, table(content))
    return replaced(page, "gpu", gpu_half(gpu))


def figures(content: Content, gpu: Measured | None) -> dict[str, bytes]:
    """By file name."""
    of = {
        group: [Line.from_json(line) for line in content["lines"] if line["group"] == group]
        for group in ("profile", "growth")
    }
    drawn = {
        "parts": parts_figure(of["profile"]),
        "length": length_figure(of["profile"]),
        "growth": growth_figure(of["growth"]),
    }
    own = {f"{name}.svg": render_figure(picture, "svg") for name, picture in drawn.items()}
    return own | gpu_figures(gpu)


def _ratio(ratio: Mapping[str, float]) -> str:
    return f"{ratio['middle']:.2f} ({ratio['low']:.2f}–{ratio['high']:.2f})"


def _waited(line: Mapping[str, Any]) -> str:
    """Of few calls the worst stands for the 99th percentile."""
    return (
        f"{line['ms']:.2f}"
        f" ({line['ms_p99'] if 'ms_p99' in line else max(line['ms_all_rounds']):.2f})"
    )


def _percent(share: float | None) -> str:
    return "" if share is None else f"{100 * share:.0f} %"


def _part(found: Mapping[str, float], part: str) -> str:
    return (
        f"{1000 * found[part]:.0f} ({100 * found[part] / sum(found.values()):.0f} %)"
        if part in found
        else ""
    )


def _of_length(line: Mapping[str, Any] | None) -> str:
    if line is None:
        return ""
    share = f" ({_percent(line['share_of_limit'])})" if "share_of_limit" in line else ""
    return f"{line['ms']:.3g}{share}"


def _usual(lengths: list[int], mean: float) -> int:
    return min(lengths, key=lambda length: abs(length - mean))


def main() -> None:
    content, gpu = read(), Measured.read()
    PAGE.write_text(page_of(PAGE.read_text("utf-8"), content, gpu), "utf-8")
    FIGURES.mkdir(parents=True, exist_ok=True)
    for name, drawn in figures(content, gpu).items():
        (FIGURES / name).write_bytes(drawn)


if __name__ == "__main__":
    main()
