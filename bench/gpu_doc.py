"""The GPU half of docs/results/performance.md, from docs/results/performance/gpu.json:
performance_doc.py puts it into the page; where the file is missing, the half is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from textwrap import fill
from typing import Any

from gpu_aims import LARGE, SMALL, Measured, aims, bucket_sizes, short
from readme_table import markdown

from litotes.bench.gpu.figure import speed_figure
from litotes.bench.lines import Line
from litotes.core.figures import render_figure

FIGURE = "gpu.svg"
KINDS = ("dense", "pruned", "cascade")

INTRODUCTION = """\
The lines of a group take turns as those above do; groups may be measured one by one (`--groups`),
each in a process of its own. A line that fails is named at the end, and the others are still
measured.

```
litotes bench gpu --data besstie:PATH --texts 2048 --csv 100000 --out runs/gpu
litotes bench gpu --quick                  # every group in short, on the built-in corpus
```

Then `cp runs/gpu/gpu.json docs/results/performance/` and `python bench/performance_doc.py`.
"""


def gpu_half(measured: Measured | None) -> str:
    """The whole half, headings included; nothing where nothing was measured."""
    if measured is None:
        return ""
    parts = ["## On a GPU", about(measured), INTRODUCTION.rstrip(), earlier(measured)]
    for title, words, table in SECTIONS:
        made = table(measured)
        if made:
            parts += [f"### {title}", words, made]
    return "\n\n".join(part for part in parts if part)


def about(measured: Measured) -> str:
    machine, subject = measured.content["machine"], measured.content["subject"]
    libraries = ("litotes", "torch", "triton", "transformers", "adasplash", "entmax")
    versions = ", ".join(f"{name} {machine[name]}" for name in libraries if name in machine)
    sizes = subject["sizes"]
    shares = " ".join(f"{share:.2f}".lstrip("0") for share in subject["pruned_shares"])
    return (
        f"{machine.get('gpu', 'unknown GPU')}, {machine.get('gpu_memory_gb', '?')} GB, CUDA"
        f" {machine.get('cuda', '?')}; {machine['n_cores']} cores; Python {machine['python']},"
        f" {versions}.\n{measured.content['n_texts']} texts of {measured.content['data']},"
        f" {subject['mean_pieces']:g} pieces on average, {subject['most_pieces']} at most. The"
        f" large encoder has the shape of BERT-base ({sizes['n_layers']} layers, width"
        f" {sizes['width']}, {sizes['n_attention_heads']} attention heads) and random weights. The"
        f" pruned one takes {subject['times_fewer_operations']:g} times fewer operations (shares"
        f" {shares})."
    )


def earlier(measured: Measured) -> str:
    """Which groups are of an older run on such a machine."""
    names = [f"`{name}`" for name in measured.content.get("earlier", ())]
    if not names:
        return ""
    listed = " and ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else names[0]
    return fill(f"Of an earlier run on such a machine: {listed}.", width=100)


def _speeds(group: str) -> Callable[[Measured], str]:
    def table(measured: Measured) -> str:
        rows = []
        for name, line in measured.lines(group).items():
            agreement = line.get("agreement")
            rows.append(
                [
                    f"`{name}`",
                    f"{line['per_second']:,.0f}",
                    f"{line['ms']:.4g} ({line['ms_low']:.4g}–{line['ms_high']:.4g})",
                    "" if agreement is None else f"{100 * agreement:.1f} %",
                    _ratios(line),
                ]
            )
        head = ["line", "texts/s", "ms for all (quartiles)", "same labels", "times as fast as"]
        return markdown(head, rows) if rows else ""

    return table


def speeds(measured: Measured) -> str:
    picture = f"![Texts a second of the opponents and of ours](performance/{FIGURE})"
    table = _speeds(LARGE)(measured)
    return f"{picture}\n\n{table}" if table else ""


def buckets(measured: Measured) -> str:
    rows = []
    for kind in KINDS:
        cells = []
        for size in bucket_sizes(measured):
            speed = measured.number("buckets", f"litotes-{kind}-p{size}", "per_second")
            cells.append("" if speed is None else f"{speed:,.0f}")
        rows.append([f"`litotes-{kind}`", *cells])
    sizes = [f"{size:,}" for size in bucket_sizes(measured)]
    return markdown(["texts/s by largest bucket of pieces", *sizes], rows) if sizes else ""


def _with_facts(group: str) -> Callable[[Measured], str]:
    """Times and what else is known, a row a line."""

    def table(measured: Measured) -> str:
        lines, facts = measured.lines(group), measured.facts(group)
        names = list(dict.fromkeys(name for known in facts.values() for name in known))
        shown = list(dict.fromkeys([*lines, *facts]))
        rows = []
        for name in shown:
            known = facts.get(name, {})
            cells = [short(known[fact]) if fact in known else "" for fact in names]
            speed = [f"{lines[name]['per_second']:,.0f}" if name in lines else ""] if lines else []
            rows.append([f"`{name}`", *speed, *cells])
        head = ["line", *(["texts/s"] if lines else []), *(_words(name) for name in names)]
        return markdown(head, rows) if rows else ""

    return table


def training(measured: Measured) -> str:
    rows = []
    for group, title in (("training", "BERT-base"), ("training-minilm", "MiniLM")):
        for name, line in measured.lines(group).items():
            rows.append([title, f"`{name}`", f"{line['ms']:.4g}", _ratios(line)])
    head = ["encoder", "line", "ms a step", "times as fast as"]
    return markdown(head, rows) if rows else ""


def training_heads(measured: Measured) -> str:
    """Tables I and II of the paper: a row a head."""
    lines = measured.lines("training-heads")
    rows = []
    for name, dense in lines.items():
        kind, _, head = name.partition("-")
        if kind != "dense":
            continue
        pruned = lines.get(f"cascade-{head}")
        cells = ["", ""] if pruned is None else [f"{pruned['ms']:.4g}", _ratios(pruned)]
        rows.append([f"`{head}`", f"{dense['ms']:.4g}", _ratios(dense), *cells])
    titles = ["head", "dense, ms", "times as fast as", "cascade, ms", "times as fast as"]
    return markdown(titles, rows) if rows else ""


def weightings(measured: Measured) -> str:
    lines, facts = measured.lines("weightings"), measured.facts("weightings")
    lengths = sorted({int(name.split("-n")[1].split("-")[0]) for name in lines})
    starts = dict.fromkeys(name.rpartition("-n")[0] for name in lines)
    head = ["ms", *(f"{n} pieces{end}" for n in lengths for end in ("", ", with backward"))]
    errors = list(dict.fromkeys(name for known in facts.values() for name in known))
    rows = []
    for start in starts:
        cells = []
        for n in lengths:
            found = [lines.get(f"{start}-n{n}{end}") for end in ("", "-backward")]
            cells += ["" if line is None else f"{line['ms']:.3g}" for line in found]
        known = [facts.get(f"{start}-n{n}", {}) for n in lengths]
        for error in errors:
            numbers = [one[error] for one in known if error in one]
            cells.append(f"{max(numbers):.1e}" if numbers else "")
        rows.append([f"`{start}`", *cells])
    return markdown([*head, *(_words(error) for error in errors)], rows) if rows else ""


def importance(measured: Measured) -> str:
    rows = []
    for name, line in measured.lines("importance").items():
        extra = measured.fact("importance", name, "extra_share")
        rows.append(
            [f"`{name}`", f"{line['ms']:.3g}", "" if extra is None else f"{100 * extra:+.1f} %"]
        )
    ms_of = measured.group("importance").get("ms_of", "")
    return markdown(["line", f"ms ({ms_of})", "on top"], rows) if rows else ""


def failures(measured: Measured) -> str:
    rows = []
    for group, found in measured.content["groups"].items():
        for name, error in found.get("failed", {}).items():
            rows.append(f"- {group}: `{name}`: {error}")
        for name, library in found.get("left_out", {}).items():
            rows.append(f"- {group}: `{name}`: left out, `{library}` is not installed")
    return "\n".join(rows)


SECTIONS: tuple[tuple[str, str, Callable[[Measured], str]], ...] = (
    ("Aims on a GPU", "What was promised before it was measured:", aims),
    (
        "Texts to labels on a GPU",
        "Texts are tokenized beforehand. The opponents' batches lie on the GPU already, padded or"
        "\npacked; ours begin with lists of piece numbers on the host. `same labels` compares with"
        "\nwhat torch alone answers in float32 with the same model; the head is random and set so"
        "\nthat each label wins somewhere, so its labels change more easily than those of a trained"
        "\none. MiniLM follows below.",
        speeds,
    ),
    ("MiniLM", "The same with an encoder of MiniLM's shape:", _speeds(SMALL)),
    (
        "By bucket",
        "A pass computes one bucket of pieces at a time. A larger one fills the GPU better; pruning"
        "\nhas to win at each of them.",
        buckets,
    ),
    (
        "Precision",
        "How many labels of 1,000 differ from float32, and how far logits lie apart at most."
        " `spread`\nis the standard deviation of logits over texts, to judge that by. `large` has"
        " random\nweights, `trained` is the built-in model or the one given with `--model`.",
        _with_facts("precision"),
    ),
    (
        "From strings",
        "From strings to answers. The shares are what tokenizing and the encoder would take alone;"
        "\nthey run beside one another, so the larger one is what limits the whole.",
        _with_facts("strings"),
    ),
    (
        "Training on a GPU",
        "Whole steps at batch 32, in bfloat16 under autocast, with dropout and fused AdamW:",
        training,
    ),
    (
        "Every head on a GPU",
        "The same at the paper's batch of 8, dense and pruned by the authors' schedule; CrossTalk"
        " with PCGrad\n(tables I and II):",
        training_heads,
    ),
    (
        "Weightings",
        "Attention of 64 texts with 12 attention heads of width 64, by the GPU's own clock; inputs"
        "\nchange from call to call, so that its cache does not hold them. Errors are relative to"
        "\nfloat64, the larger of the two lengths.",
        weightings,
    ),
    (
        "What removal costs",
        "Attention alone, with what each key received, and with that weighted by the length of its"
        "\nvalue:",
        importance,
    ),
    (
        "Launches and waits",
        "One batch of up to 64 texts as torch's profiler sees it, by torch alone (`before`) and by"
        " litotes\n(`after`); `bucket` is a full one, with the share of each part of the GPU's"
        " time.",
        _with_facts("launches"),
    ),
    (
        "A large table on a GPU",
        "From CSV to CSV, as `litotes predict --file` does it. Labels are compared with the CPU's:",
        _with_facts("csv"),
    ),
    ("What could not be measured", "Lines that failed or were left out in this run:", failures),
)


def gpu_figures(measured: Measured | None) -> dict[str, bytes]:
    """By file name."""
    if measured is None:
        return {}
    titles = {LARGE: "BERT-base, random weights", SMALL: "MiniLM"}
    by_model = {}
    for group, title in titles.items():
        by_model[title] = [Line.from_json(line) for line in measured.lines(group).values()]
    if not any(by_model.values()):
        return {}
    return {FIGURE: render_figure(speed_figure(by_model), "svg")}


def _ratios(line: Mapping[str, Any]) -> str:
    ratios: Sequence[str] = [
        f"{ratio['middle']:.2f} `{other}`" for other, ratio in line["ratios"].items()
    ]
    return ", ".join(ratios)


def _words(name: str) -> str:
    words = name.replace("_", " ").replace("per 1000", "per 1,000")
    return words.replace("gpu", "GPU").replace(" mb", ", MB")
