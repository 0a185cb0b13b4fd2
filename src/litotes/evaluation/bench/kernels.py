"""Where the time of a text goes inside one of our files: ONNX Runtime's own profile, summed by part.

Nodes are named after the part they belong to: `layer.3.attention/Softmax_21` (runtime/graph.py). The runtime counts whole microseconds,
so what many tiny nodes take is counted a little short.
"""

from __future__ import annotations

import json
import re
import time
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from litotes.data.pieces import Pieces
from litotes.runtime.onnx_session import OnnxSession

CLOCK = time.thread_time if time.get_clock_info("thread_time").resolution < 1e-5 else time.perf_counter  # Windows counts in 16 ms
_NODE = re.compile(r"^(?:layer\.\d+\.)?(\w*)/.*_kernel_time$")


def kernel_ms(file: Path, texts: Sequence[Pieces], *, n_runs: int) -> list[dict[str, float]]:
    """For each text the milliseconds of every part, the smallest of `n_runs` warm runs on one thread, node by node."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.enable_profiling = True
    options.profile_file_prefix = str(file.with_suffix(""))
    opened = onnxruntime.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])
    session = OnnxSession(opened, opened.get_modelmeta().custom_metadata_map)
    for text in texts:
        for _ in range(n_runs + 1):
            session.logits([text])
    profile = Path(opened.end_profiling())
    try:
        events = json.loads(profile.read_text("utf-8"))
    finally:
        profile.unlink()
    runs = _runs(events)
    return [_by_part(runs[start + 1 : start + n_runs + 1]) for start in range(0, len(runs), n_runs + 1)]


def call_ms(file: Path, texts: Sequence[Pieces], *, n_runs: int) -> list[float]:
    """For each text the milliseconds of its quickest call, from pieces to logits on one thread, without a profile.

    In the time the processor gave to the thread: a call that had to wait on a busy machine is no longer for it.
    """
    session = OnnxSession.load(file)
    return [1000 * min(_seconds(session, text) for _ in range(n_runs)) for text in texts]


def _seconds(session: OnnxSession, text: Pieces) -> float:
    start = CLOCK()
    session.logits([text])
    return CLOCK() - start


def _runs(events: Sequence[Mapping[str, Any]]) -> list[list[Mapping[str, Any]]]:
    """The nodes of each run, in the order of the runs; a node belongs to the run that began last before it."""
    starts = sorted(event["ts"] for event in events if event["name"] == "model_run")
    runs: list[list[Mapping[str, Any]]] = [[] for _ in starts]
    for event in events:
        if event.get("cat") == "Node" and event["name"].endswith("_kernel_time"):
            runs[bisect_right(starts, event["ts"]) - 1].append(event)
    return runs


def _by_part(runs: Sequence[Sequence[Mapping[str, Any]]]) -> dict[str, float]:
    times: dict[str, list[int]] = defaultdict(list)
    for event in (event for run in runs for event in run):
        times[event["name"]].append(event["dur"])
    parts: dict[str, float] = defaultdict(float)
    for name, microseconds in times.items():
        found = _NODE.match(name)
        n_times = len(microseconds) / len(runs)  # a node in the body of a loop runs several times a run
        parts[(found and found[1]) or "other"] += min(microseconds) * n_times / 1000
    return dict(parts)
