"""`litotes export --model M [--int8 | --int16 | --to transformers --out FOLDER]`, and `litotes
bench`: how fast a model is, exported and not.
"""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path

from litotes.cli.display import print_json, print_lines, progress, say
from litotes.cli.tables import print_rows
from litotes.core.errors import UserError
from litotes.core.figures import save_figure
from litotes.exporting.export import ExportLoss, ExportRefused, export_models, working_copy
from litotes.exporting.transformers_folder import export_to_transformers
from litotes.model.builtin import is_builtin
from litotes.model.folder import open_model
from litotes.study.speed import draw_speed, measure_speed

LOSSES = """\
task: {0[loss].task}
texts: {0[loss].n}
labels changed: {0[changed]}
largest difference of a probability: {0[loss].largest_difference:.2g}
macro-F1: {0[f1]}
"""


def export(options: argparse.Namespace) -> None:
    if options.to == "transformers":
        _export_to_transformers(options)
        return
    folder = open_model(options.model)
    source = options.data
    if source is None and is_builtin(folder.path):
        source = "sampler"
    precision = "int8" if options.int8 else ("int16" if options.int16 else "float32")
    try:
        with progress() as watch, working_copy(folder, options.out) as target:
            results = export_models(
                target,
                precision=precision,
                source=source,
                allowed=None if options.allow is None else options.allow / 100,
                n_texts=options.texts,
                watch=watch,
            )
    except ExportRefused as error:
        raise UserError(f"{error}: {_command(options, error.allowed)}") from error
    if options.json:
        print_json([result.as_json() for result in results])
        return
    for result in results:
        title = (
            f"{result.file}, {result.precision}, {result.n_bytes / 1e6:.1f} MB; against torch on"
            f" {result.measured_on}"
        )
        print_rows(LOSSES, [_row(loss) for loss in result.losses], title=title)


def _export_to_transformers(options: argparse.Namespace) -> None:
    export_to_transformers(open_model(options.model), Path(options.out))
    if options.json:
        print_json({"folder": options.out})
        return
    load = f"AutoModelForSequenceClassification.from_pretrained({options.out!r})"
    print_lines(f"The model is in {options.out}. Load it: {load}")


def _command(options: argparse.Namespace, allowed: float) -> str:
    """The same command, with which the export is accepted."""
    words = ["litotes", "export", "--model", options.model]
    words += [f"--{name}" for name in ("int8", "int16") if getattr(options, name)]
    for name in ("data", "texts", "out"):
        if getattr(options, name) is not None:
            words += [f"--{name}", str(getattr(options, name))]
    return shlex.join([*words, "--allow", f"{allowed:g}"])


def _row(loss: ExportLoss) -> dict[str, object]:
    f1 = "" if loss.macro_f1 is None else f"{loss.macro_f1:.3f} → {loss.macro_f1_exported:.3f}"
    changed = f"{loss.n_changed} ({loss.changed:.1%})"
    if loss.n_toss_ups:
        changed += f", {loss.n_toss_ups} of them a toss-up"
    return {"loss": loss, "changed": changed, "f1": f1}


SPEED = """\
: {0.name}
texts/s: {0.texts_per_second:,.0f} ({0.texts_per_second_low:,.0f}–{0.texts_per_second_high:,.0f})
speed ratio: {0.ratio:.2f} ×
ms a text: {0.ms:.3g}
p99: {0.ms_p99:.3g}
same labels: {0.same_labels:.1%}
"""


def bench(options: argparse.Namespace) -> None:
    with progress() as watch:
        speed = measure_speed(
            options.model,
            options.data,
            n_texts=options.texts,
            n_rounds=options.rounds,
            seed=options.seed or 0,
            device=options.device,
            watch=watch,
        )
    say(f"{name}: left out: {reason}" for name, reason in speed.left_out.items())
    if options.out:
        save_figure(Path(options.out) / "bench", draw_speed(speed), speed.as_json())
    if options.json:
        print_json(speed.as_json())
        return
    print_lines(", ".join(f"{name} {value}" for name, value in speed.machine.items()))
    title = (
        f"{speed.model}: {speed.n_texts} texts of {options.data}, quartiles in brackets; speed"
        f" against {speed.baseline}"
    )
    print_rows(SPEED, speed.lines, title=title)
    if options.out:
        print_lines(f"Written to {options.out}: bench.json, bench.svg, bench.png")
