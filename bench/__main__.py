"""Speed side by side with rivals, as ratios in one run: `python -m bench [WHAT] [--json]`.

Rivals are Hugging Face transformers, ONNX Runtime, CTranslate2, OpenVINO and the entmax package; a
line whose library is absent is left out and named on stderr.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from litotes.cli.options import count
from litotes.core.errors import UserError

if TYPE_CHECKING:
    from bench.gpu.groups import GpuReport
    from bench.gpu.turns import Facts
    from bench.lines import BenchResult, Line
    from bench.measure import BenchReport
    from bench.subject import Subject

MODEL_BENCHES = ("classify", "latency", "profile", "growth")
ALL = (*MODEL_BENCHES, "pcgrad", "entmax", "effective", "attention", "train")
WHAT = (*ALL, "gpu")
"""The names in bench/measure.py, written out: importing those tables takes seconds."""
N_TEXTS, N_ROUNDS = 256, 5
N_QUICK_TEXTS, N_QUICK_ROUNDS = 12, 1
N_GPU_TEXTS, N_QUICK_GPU_TEXTS = 1024, 64


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m bench", description=(__doc__ or "").split("\n")[0]
    )
    _add_options(parser)
    try:
        run(parser.parse_args(words))
    except UserError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


def _add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="one JSON document on stdout")
    parser.add_argument("--seed", type=int, help="random seed of the choice of texts")
    parser.add_argument("--out", metavar="FOLDER", help="write bench.json (gpu: gpu.json) here")
    parser.add_argument(
        "what",
        nargs="?",
        choices=WHAT,
        metavar="WHAT",
        help=f"{', '.join(WHAT)} (default: all of them; gpu where there is one)",
    )
    parser.add_argument(
        "--data",
        default="sampler",
        metavar="SOURCE",
        help="where the texts come from (default: sampler)",
    )
    parser.add_argument(
        "--texts",
        type=count,
        metavar="N",
        help=f"how many, drawn at random (default {N_TEXTS}; gpu {N_GPU_TEXTS})",
    )
    parser.add_argument(
        "--rounds", type=count, metavar="N", help=f"measured rounds (default {N_ROUNDS})"
    )
    parser.add_argument(
        "--quick", action="store_true", help="few texts, one round: all groups in two minutes"
    )
    parser.add_argument(
        "--model",
        metavar="FOLDER",
        help="a dense model (default: minilm with a fresh head); gpu: a trained model"
        " whose labels are compared",
    )
    parser.add_argument("--pruned", metavar="FOLDER", help="the model that was pruned from it")
    parser.add_argument(
        "--heads",
        metavar="NAMES",
        help="train: heads with commas between, or all (default: linear)",
    )
    parser.add_argument("--batch", type=count, metavar="N", help="train: texts a batch (default 8)")
    parser.add_argument(
        "--groups", metavar="NAMES", help="gpu: groups with commas between (default: all)"
    )
    parser.add_argument(
        "--csv", type=count, metavar="N", help="gpu: answer a table of so many rows too"
    )
    parser.add_argument(
        "--seconds", type=count, metavar="N", help="gpu: begin nothing new later (default 450)"
    )


def run(options: argparse.Namespace) -> None:
    from bench.measure import QUICK, measure
    from litotes.cli.display import print_json, print_lines, progress
    from litotes.core.machine import is_cpu
    from litotes.core.storage import write_json

    if (options.csv or options.groups or options.seconds) and options.what not in (None, "gpu"):
        raise UserError(
            "--groups, --csv and --seconds belong to `python -m bench gpu`; bench"
            f" {options.what} has no such choice."
        )
    train_options = _train_options(options)
    if options.what == "gpu":
        if options.pruned:
            raise UserError(
                f"--pruned belongs to {', '.join(MODEL_BENCHES)}; bench gpu prunes by itself."
            )
        _show_gpu(options, _measure_gpu(options))
        return
    what = ALL if options.what is None else (options.what,)
    group_options = (QUICK if options.quick else {}) | {"train": train_options}
    subject = _load_subject(options)
    texts = _draw_texts(options, N_QUICK_TEXTS if options.quick else N_TEXTS)
    n_rounds = options.rounds or (N_QUICK_ROUNDS if options.quick else N_ROUNDS)
    with progress() as watch:
        result = measure(
            what, texts, subject=subject, options=group_options, n_rounds=n_rounds, watch=watch
        )
    _say_left_out(result)
    # the name of the source alone: paths are private
    content = {"data": options.data.partition(":")[0], **result.as_json()}
    if options.out:
        write_json(Path(options.out) / "bench.json", content)
    gpu = _measure_gpu(options) if options.what is None and not is_cpu(None) else None
    if options.json:
        print_json(content if gpu is None else {**content, "gpu": gpu.as_json()})
        return
    print_lines(", ".join(f"{name} {value}" for name, value in result.machine.items()))
    for name, bench in result.groups.items():
        _show(name, bench, options.data)
    if gpu is not None:
        _show_gpu(options, gpu)


def _measure_gpu(options: argparse.Namespace) -> GpuReport:
    """With --out, gpu.json is written after every group, beside the groups that it has."""
    from bench.gpu.context import MOST_SECONDS, GpuBench, quick, repeat_to
    from bench.gpu.groups import measure_gpu, require_gpu
    from bench.gpu.kept import add_groups
    from litotes.cli.display import progress, say

    device = require_gpu()
    n_wanted = options.texts or (N_QUICK_GPU_TEXTS if options.quick else N_GPU_TEXTS)
    data = options.data.partition(":")[0]

    def keep(report: GpuReport) -> None:
        if options.out:
            add_groups(Path(options.out) / "gpu.json", {"data": data, **report.as_json()})

    with progress() as watch:
        bench = GpuBench(
            device,
            repeat_to(_draw_texts(options, n_wanted), n_wanted),
            n_rounds=options.rounds or N_ROUNDS,
            trained=options.model or "builtin",
            n_rows=options.csv,
            deadline=time.monotonic() + (options.seconds or MOST_SECONDS),
            watch=watch,
        )
        names = options.groups.split(",") if options.groups else ()
        report = measure_gpu(quick(bench) if options.quick else bench, names, on_group=keep)
    _say_left_out(report.as_report())
    say(f"{name}: failed: {error}" for name, error in report.failed.items())
    return report


def _show_gpu(options: argparse.Namespace, report: GpuReport) -> None:
    from litotes.cli.display import print_json, print_lines
    from litotes.cli.tables import print_table

    if options.json:
        print_json({"data": options.data.partition(":")[0], **report.as_json()})
        return
    print_lines(", ".join(f"{name} {value}" for name, value in report.machine.items()))
    for name, group in report.groups.items():
        if group.result.lines:
            _show(name, group.result, options.data)
        if group.facts:
            print_table(*table_of_facts(group.facts), title=f"{name}: what else is known")


def table_of_facts(facts: Facts) -> tuple[list[str], list[list[str]]]:
    """A row a line, a column for each number that any of them has."""
    names = list(dict.fromkeys(name for known in facts.values() for name in known))
    rows = []
    for line, known in facts.items():
        rows.append([line, *(f"{known[name]:g}" if name in known else "" for name in names)])
    return ["line", *(name.replace("_", " ") for name in names)], rows


def _say_left_out(report: BenchReport) -> None:
    from litotes.cli.display import say

    for name, library in report.left_out.items():
        say([f"{name}: left out, `{library}` is not installed."])
    for name, reason in report.refused.items():
        say([f"{name}: refused, {reason}."])


def _draw_texts(options: argparse.Namespace, n_usual: int) -> list[str]:
    from litotes.data.sources import load_with_test_part

    corpus = load_with_test_part(options.data)
    texts = [example.text for example in corpus.where(split=corpus.test_split())]
    n_wanted = options.texts or n_usual
    return random.Random(options.seed or 0).sample(texts, min(n_wanted, len(texts)))


def _load_subject(options: argparse.Namespace) -> Subject | None:
    """The models to measure; None for a bench of parts, which has its own."""
    if options.what is not None and options.what not in MODEL_BENCHES:
        if options.model or options.pruned:
            raise UserError(
                f"--model and --pruned belong to {', '.join(MODEL_BENCHES)}; bench {options.what}"
                " has no such choice."
            )
        return None
    from bench.subject import load_subject

    return load_subject(options.model, options.pruned)


def _train_options(options: argparse.Namespace) -> dict[str, Any]:
    """The options that the bench of training alone has."""
    from litotes.model.heads import HEADS

    given: dict[str, Any] = {}
    if options.heads is not None:
        given["heads"] = list(HEADS) if options.heads == "all" else options.heads.split(",")
    if options.batch is not None:
        given["batch_texts"] = options.batch
    if given and options.what not in (None, "train"):
        raise UserError(
            "--heads and --batch belong to `python -m bench train`; bench"
            f" {options.what} has no such choice."
        )
    return given


def _show(name: str, bench: BenchResult, data: str) -> None:
    from litotes.cli.display import print_lines
    from litotes.cli.tables import print_table

    title = f"{name}: texts of {data}; quartiles of the rounds in brackets"
    print_table(*table(bench), title=title)
    print_lines(*bench.notes)
    if name == "train":
        from bench.train import table_of_heads

        rows = []
        for head, dense, cascade in table_of_heads(bench):
            rows.append((head, f"{dense:.4f}", f"{cascade:.4f}", f"{cascade / dense:.3f}"))
        columns = ("head", "dense", "cascade", "cascade / dense")
        print_table(columns, rows, title=f"seconds for {bench.ms_of}")


def table(bench: BenchResult) -> tuple[list[str], list[list[str]]]:
    """Each comparison has a column of its own, by its place among those of a line: what packing
    gains is never mixed with pruning.

    What no line has a number for is left out.
    """
    columns = {
        f"ms ({bench.ms_of})": _milliseconds,
        "texts/s": _per_second,
        "GFLOP": _work,
        "of the limit": _share,
        "same labels": _agreement,
    }
    cells = {head: [show(bench, line) for line in bench.lines] for head, show in columns.items()}
    shown = {head: column for head, column in cells.items() if any(column)}
    n_comparisons = max(len(bench.against(line)) for line in bench.lines)
    rows = []
    for place, line in enumerate(bench.lines):
        numbers = [column[place] for column in shown.values()]
        rows.append([line.name, *numbers, *_comparisons(bench, line, n_comparisons)])
    return [bench.lines[0].group, *shown, *["as fast as"] * n_comparisons], rows


def _milliseconds(bench: BenchResult, line: Line) -> str:
    return f"{_short(line.ms)} ({_short(line.spread.low)}–{_short(line.spread.high)})"


def _short(number: float) -> str:
    """Three digits, or all before the point."""
    return f"{number:.0f}" if number >= 100 else f"{number:.3g}"


def _per_second(bench: BenchResult, line: Line) -> str:
    return f"{line.per_second:.1f}"


def _work(bench: BenchResult, line: Line) -> str:
    return "" if line.flops is None else f"{line.flops / 1e9:.1f}"


def _share(bench: BenchResult, line: Line) -> str:
    share = bench.share_of_limit(line)
    return "" if share is None else f"{share:.0%}"


def _agreement(bench: BenchResult, line: Line) -> str:
    return "" if line.agreement is None else f"{line.agreement:.1%}"


def _comparisons(bench: BenchResult, line: Line, n_columns: int) -> list[str]:
    ratios = bench.ratios(line)
    names = [*bench.against(line), *[""] * n_columns][:n_columns]
    return [f"{ratios[name].middle:.2f} × {name}" if name in ratios else "" for name in names]


if __name__ == "__main__":
    sys.exit(main())
