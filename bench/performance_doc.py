"""Writes the tables and figures of docs/results/performance.md from docs/results/bench.json: see
readme_table.py; its GPU half from docs/results/performance/gpu.json: see gpu_doc.py; CTranslate2
and OpenVINO from docs/results/performance/rivals.json: see classify_doc.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from classify_doc import classify, limit, percent, read_rivals, rivals, shares, spread
from gpu_doc import Measured, gpu_figures, gpu_half
from readme_table import ROOT, lines_of, markdown, read, replaced

from litotes.bench.figure import growth_figure, length_figure, parts_figure
from litotes.bench.lines import Line
from litotes.bench.profile import PARTS
from litotes.core.figures import render_figure

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
        "ctranslate2",
        "openvino",
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
                        spread(found),
                        "met" if found["middle"] >= wanted else "**missed**",
                    ]
                )
    return markdown(["times as fast", "aim", "measured (quartiles)", ""], rows)


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
    of_limit = shares(content, "profile")
    rows = []
    for name in who:
        names = [f"{name}-n{length}" for length in lengths]
        cells = [_of_length(lines.get(one), of_limit.get(one)) for one in names]
        rows.append([f"`{name}`", *cells])
    return markdown(["ms of one text, one thread (of the limit)", *map(str, lengths)], rows)


def growth(content: Content) -> str:
    rows = []
    for name, line in lines_of(content, "growth").items():
        compared = ", ".join(
            f"{ratio['middle']:.2f} `{other}`" for other, ratio in line["ratios"].items()
        )
        rows.append([f"`{name}`", f"{line['per_second']:.1f}", compared])
    return markdown(["line", "texts/s", "times as fast as"], rows)


ABOUT_OTHERS = """\
## The other benchmarks

Milliseconds are those of a round: all texts for `attention` and `pcgrad`, up to four for `entmax`
and `effective`, a batch for `train` ([benchmarks](../reference/benches.md) says what each line
does).
"""


def others(content: Content) -> str:
    """The section about them; nothing where the run left them out."""
    rows = []
    for group in ("entmax", "effective", "pcgrad", "attention", "train"):
        for name, line in lines_of(content, group).items():
            compared = ", ".join(
                f"{spread(ratio)} `{other}`"
                for other, ratio in line["ratios"].items()
                if other != name
            )
            rows.append([group, f"`{name}`", f"{line['ms']:.4g}", compared])
    if not rows:
        return ""
    table = markdown(["group", "line", "ms", "times as fast as (quartiles)"], rows)
    return f"{ABOUT_OTHERS}\n{table}"


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


def page_of(
    page: str, content: Content, gpu: Measured | None, beside: Content | None = None
) -> str:
    """The page with all its tables made again. gpu: what was measured on a GPU, if anything.
    beside: the run in which CTranslate2 and OpenVINO took part, if there was one.
    """
    for name, table in TABLES.items():
        page = replaced(page, name, table(content))
    page = replaced(page, "rivals", rivals(beside))
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


def _waited(line: Mapping[str, Any]) -> str:
    """Of few calls the worst stands for the 99th percentile."""
    return (
        f"{line['ms']:.2f}"
        f" ({line['ms_p99'] if 'ms_p99' in line else max(line['ms_all_rounds']):.2f})"
    )


def _part(found: Mapping[str, float], part: str) -> str:
    return (
        f"{1000 * found[part]:.0f} ({100 * found[part] / sum(found.values()):.0f} %)"
        if part in found
        else ""
    )


def _of_length(line: Mapping[str, Any] | None, share: float | None) -> str:
    if line is None:
        return ""
    return f"{line['ms']:.3g}" + ("" if share is None else f" ({percent(share)})")


def _usual(lengths: list[int], mean: float) -> int:
    return min(lengths, key=lambda length: abs(length - mean))


def main() -> None:
    content, gpu = read(), Measured.read()
    PAGE.write_text(page_of(PAGE.read_text("utf-8"), content, gpu, read_rivals()), "utf-8")
    FIGURES.mkdir(parents=True, exist_ok=True)
    for name, drawn in figures(content, gpu).items():
        (FIGURES / name).write_bytes(drawn)


if __name__ == "__main__":
    main()
