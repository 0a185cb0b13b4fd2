"""A large table from CSV to CSV, as `litotes predict --file … --out …` answers it: texts a second,
the most memory it took, and labels against the CPU's.
"""

from __future__ import annotations

import csv as tables
import os
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch

from bench.gpu.context import GpuBench, repeat_to
from bench.gpu.models import copy_to
from bench.gpu.turns import GpuGroup, time_in_guarded_turns
from bench.lines import BenchResult, Candidate
from litotes.core.progress import prefix_watch
from litotes.model.checkpoint import Model
from litotes.prediction.predictor import Predictor
from litotes.prediction.table_jobs import predict_to_file
from litotes.prediction.tables import TableRequest
from litotes.prediction.torch_runtime import TorchRuntime

N_COMPARED = 512
"""Texts whose labels are compared with those of torch on a CPU."""


def csv(bench: GpuBench) -> GpuGroup:
    """The trained model and the large one, each twice; the second time counts."""
    attempts = bench.attempts()
    facts: dict[str, dict[str, float]] = {}
    n_rows = bench.n_rows or 0
    with TemporaryDirectory(prefix="litotes-bench-", ignore_cleanup_errors=True) as folder:
        source = Path(folder) / "texts.csv"
        write_texts(source, repeat_to(bench.texts, n_rows)[:n_rows])
        models = {"trained": bench.trained_model, "large": bench.large["dense"]}
        makers: dict[str, Callable[[], Candidate]] = {}
        for who, model in models.items():
            makers[f"{who}-csv"] = partial(_candidate, bench, model, source, facts, f"{who}-csv")
        lines = time_in_guarded_turns(
            "csv", makers, attempts, n_texts=n_rows, n_rounds=1, watch=bench.watch
        )
        out = source.with_name("trained-csv.csv")
        if out.is_file():
            compare = partial(differing_labels, bench.trained_model, out)
            found = attempts.attempt("trained-csv", compare)
            facts.setdefault("trained-csv", {}).update(found or {})
    result = BenchResult("trained-csv", lines, attempts.left_out, ms_of=f"{n_rows} rows")
    return GpuGroup(result, attempts.failed, facts)


def write_texts(file: Path, texts: tuple[str, ...]) -> None:
    with file.open("w", encoding="utf-8", newline="") as stream:
        writer = tables.writer(stream)
        writer.writerow(["text"])
        writer.writerows([text] for text in texts)


def _candidate(
    bench: GpuBench, model: Model, source: Path, facts: dict[str, dict[str, float]], name: str
) -> Candidate:
    predictor = Predictor(bench.runtime(model))
    out = source.with_name(f"{name}.csv")

    def act(_: object) -> None:
        out.unlink(missing_ok=True)
        forget_peaks()
        predict_to_file(TableRequest(source), predictor, out, watch=prefix_watch(bench.watch, name))
        facts[name] = peaks()

    return Candidate(act, against=())


def forget_peaks() -> None:
    """Begins to watch memory anew; where the system does not let us, the whole process counts."""
    if torch.cuda.is_available():
        torch.cuda.reset_peak_memory_stats()
    forget = Path("/proc/self/clear_refs")
    if os.access(forget, os.W_OK):
        forget.write_text("5")


def peaks() -> dict[str, float]:
    """The most memory since then, in MB: the host's, and what tensors took of the device's."""
    found: dict[str, float] = {}
    status = Path("/proc/self/status")
    if status.is_file():
        match = re.search(r"VmHWM:\s*(\d+) kB", status.read_text("utf-8"))
        if match:
            found["peak_host_mb"] = round(int(match[1]) / 1024)
    if torch.cuda.is_available():
        found["peak_gpu_mb"] = round(torch.cuda.max_memory_allocated() / 2**20)
        found["reserved_gpu_mb"] = round(torch.cuda.max_memory_reserved() / 2**20)
    return found


def differing_labels(model: Model, out: Path) -> dict[str, float]:
    """Labels of 1,000 in the file that differ from those of torch on a CPU, in float32."""
    with out.open(encoding="utf-8", newline="") as stream:
        rows: list[dict[str, Any]] = [
            row for _, row in zip(range(N_COMPARED), tables.DictReader(stream), strict=False)
        ]
    cpu = torch.device("cpu")
    expected = Predictor(TorchRuntime(copy_to(model, cpu), cpu)).predict(
        [row["text"] for row in rows]
    )
    same = []
    for row, prediction in zip(rows, expected, strict=True):
        same += [row[task] == str(answer.label) for task, answer in prediction.answers.items()]
    return {"differing_per_1000": round(1000 * (1 - float(np.mean(same))), 1)}
