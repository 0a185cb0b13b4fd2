"""Every kernel of attention against the plain path in float64, on this machine's GPU:

    python -m bench.gpu_contracts [--dtypes float32,float16,bfloat16] [--workers 16]

The cases are those of tests/kernels/cases.py, with more lengths and in all precisions;
where pytest is installed, the tests in that folder run on the GPU as well. What is found is written
to docs/results/performance/gpu-contracts.json after every case, with the machine's name. Exit code
1 if an error is larger than it may be. Compiling takes nearly all the time, and one core a worker.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import torch

from bench.gpu_facts import gpu_facts
from litotes.core.errors import reason_of
from litotes.core.machine import machine
from litotes.core.storage import write_json

ROOT = Path(__file__).parent.parent
TESTS = ROOT / "tests" / "kernels"
RESULTS = ROOT / "docs" / "results" / "performance" / "gpu-contracts.json"

LIMITS = {"float32": 1e-4, "float16": 1e-2, "bfloat16": 8e-2}
"""The largest error of numbers about 1 that is accepted: some steps of the type."""

Check = Callable[[Any, torch.device, torch.dtype], float]
Write = Callable[[Mapping[str, Any]], None]


def all_cases(cases: Any) -> Iterator[tuple[str, Any]]:
    """Each with a name, those that compile for minutes last. cases: the module of the tests."""
    for rule in cases.RULES:
        yield rule, cases.Case(rule, wanted="received")
    for width in (20, 64, 128):
        yield f"width {width}", cases.Case("squares", head_width=width, spread=1.0)
    yield "bias", cases.Case("squares", with_bias=True)
    yield "bias, firsts only", cases.Case("softmax", with_bias=True, first_only=True)
    blocks = cases.Case("block_top_k", lengths=(2, 9, 17), first_only=True)
    yield "blocks, firsts only", blocks
    yield "heads gone", cases.Case("softmax", alive=(0b01, 0b10, 0b00, 0b11), wanted="received")
    yield "rows of nobody", cases.Case("lines", n_nobody=7, wanted="received")
    yield "by value", replace(cases.Case("top_k"), wanted="value")
    for rule in ("squares", "learned", "top_k"):
        long = cases.Case(rule, lengths=(257, 400, 512), wanted="received", halves=True)
        yield f"{rule}, long, in halves", long
    for rule in cases.RULES:
        yield f"{rule}, long", cases.Case(rule, lengths=(130, 257, 512), wanted="received")
    for rule in cases.RULES:
        yield f"{rule}, longest", cases.Case(rule, lengths=(1024, 700), n_heads=1)


def check_all(found_by_case: Iterator[list[dict[str, Any]]], write: Write) -> list[dict[str, Any]]:
    """All entries, shown and written as they come."""
    found: list[dict[str, Any]] = []
    for entries in found_by_case:
        if not entries:
            continue
        found += entries
        print(f"{entries[0]['case']}: {_worst(entries)}", flush=True)
        write({"cases": found})
    return found


def check_case(
    name: str,
    case: Any,
    checks: Mapping[str, Check],
    device: torch.device,
    dtypes: list[str],
    *,
    applies: Callable[[Any, str, str], bool] = lambda case, what, dtype: True,
) -> list[dict[str, Any]]:
    """An entry for each check and precision: its error, or why there is none."""
    return [
        {"case": name, "what": what, "dtype": dtype} | _check(check, case, device, dtype)
        for what, check in checks.items()
        for dtype in dtypes
        if applies(case, what, dtype)
    ]


def check_by_name(name: str, dtypes: list[str]) -> list[dict[str, Any]]:
    """The same in a process of its own, which finds the case by its name."""
    cases = import_cases()
    checks = {"forward": cases.forward_error, "gradient": cases.gradient_error}
    case = dict(all_cases(cases))[name]
    return check_case(name, case, checks, torch.device("cuda"), dtypes, applies=fits)


def in_workers(
    names: list[str], dtypes: list[str], n_workers: int
) -> Iterator[list[dict[str, Any]]]:
    """In their order, so that the file does not depend on who was quicker."""
    check = partial(check_by_name, dtypes=dtypes)
    if n_workers == 1:
        yield from map(check, names)
        return
    with ProcessPoolExecutor(n_workers, mp_context=get_context("spawn")) as pool:
        yield from pool.map(check, names)


def import_cases() -> Any:
    if str(TESTS) not in sys.path:
        sys.path.insert(0, str(TESTS))
    return import_module("cases")


def fits(case: Any, what: str, dtype: str) -> bool:
    """Rows are halves in half precision only; of a learned α in bfloat16 and without gradient."""
    if not case.halves:
        return True
    if case.rule == "learned":
        return what == "forward" and dtype == "bfloat16"
    return dtype != "float32"


def _check(check: Check, case: Any, device: torch.device, dtype: str) -> dict[str, Any]:
    try:
        error = check(case, device, getattr(torch, dtype))
    # a compiler may fail in any way; the others are still tried, and this one is reported
    except Exception as failure:
        return {"failed": f"{type(failure).__name__}: {reason_of(failure)}", "is_met": False}
    return {"error": float(f"{error:.3g}"), "is_met": error <= LIMITS[dtype]}


def _worst(entries: list[dict[str, Any]]) -> str:
    """The largest error in each precision, or the first failure."""
    worst: dict[str, float] = {}
    for entry in entries:
        if "failed" in entry:
            return f"{entry['what']}, {entry['dtype']}: {entry['failed']}"
        worst[entry["dtype"]] = max(worst.get(entry["dtype"], 0.0), entry["error"])
    return ", ".join(f"{dtype} {error:.1e}" for dtype, error in worst.items())


def run_tests() -> dict[str, Any]:
    """How many of the folder's tests pass here; nothing where pytest is not installed."""
    if find_spec("pytest") is None or find_spec("hypothesis") is None:
        print("pytest or hypothesis is not installed: the tests themselves are left out")
        return {}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(TESTS)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    print(done.stdout[-2000:])
    return {"exit_code": done.returncode, **count_tests(done.stdout)}


def count_tests(shown: str) -> dict[str, int]:
    """{"passed": 3, "failed": 1}, from what pytest shows at its end."""
    counts = {}
    for number, what in re.findall(r"(\d+) (passed|failed|skipped|errors?)\b", shown):
        counts[what] = int(number)
    return counts


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--dtypes", default=",".join(LIMITS))
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--workers", type=int, default=1, help="cases at the same time")
    parser.add_argument("--no-tests", action="store_true", help="leave the tests themselves out")
    options = parser.parse_args()
    if not torch.cuda.is_available():
        raise SystemExit("This script needs a CUDA device. Run it where there is one.")
    about = {"machine": machine() | gpu_facts(torch.device("cuda")), "limits": LIMITS}

    def write(content: Mapping[str, Any]) -> None:
        write_json(options.out, about | dict(content))

    names = [name for name, _ in all_cases(import_cases())]
    found = check_all(in_workers(names, options.dtypes.split(","), options.workers), write)
    tests = {} if options.no_tests else run_tests()
    write({"cases": found, "tests": tests})
    missed = [entry for entry in found if not entry["is_met"]]
    for entry in missed:
        print(f"missed: {entry}")
    print(f"{len(found)} errors measured, {len(missed)} missed")
    return 1 if missed or tests.get("exit_code") else 0


if __name__ == "__main__":
    sys.exit(main())
