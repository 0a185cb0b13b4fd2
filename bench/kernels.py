"""Where the time of a text goes inside one of our files: ONNX Runtime's own profile, summed by
part.

Nodes are named after the part they belong to: `layer.3.attention/Softmax_21`
(exporting/graph.py). A node's time in the profile includes the writing down of its inputs'
shapes, ten microseconds and more, of which a plain call knows nothing. The cheapest node, a reshape
that moves no number, shows how much that is; so much is taken off every node.
"""

from __future__ import annotations

import json
import re
import time
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from litotes.encoder.tokenizer import Pieces
from litotes.prediction.onnx_file import read_model_bytes
from litotes.prediction.onnx_runtime import OnnxSession

N_TURNS = 4
N_IN_A_ROW = 3
"""A profiled and a plain session take turns, so that both meet the same machine; each warms up once
whenever it is its turn.
"""
# Windows counts in 16 ms
CLOCK = (
    time.thread_time if time.get_clock_info("thread_time").resolution < 1e-5 else time.perf_counter
)
_NODE = re.compile(r"^(?:layer\.\d+\.)?(\w*)/.*_kernel_time$")


@dataclass(frozen=True)
class Call:
    """Milliseconds of the quickest call with one text, from pieces to logits on one thread, and of
    its parts, each its quickest.

    ms: in the time the processor gave to the thread: a call that had to wait on a busy machine did
    not take longer for it.
    """

    ms: float
    parts: Mapping[str, float]


def profile_calls(file: Path, texts: Sequence[Pieces]) -> list[Call]:
    """A call for each text."""
    plain, (profiled, inner) = OnnxSession.load(file), _profiled_session(file)
    quickest = [_time_in_turns(plain, profiled, text) for text in texts]
    profile = Path(inner.end_profiling())
    try:
        runs = _runs(json.loads(profile.read_text("utf-8")))
    finally:
        profile.unlink()
    n_runs = N_TURNS * (1 + N_IN_A_ROW)  # of each text
    calls = []
    for number, ms in enumerate(quickest):
        own = runs[number * n_runs : (number + 1) * n_runs]
        del own[:: 1 + N_IN_A_ROW]  # the first of each row warms up
        calls.append(Call(ms, _by_part(own)))
    return calls


def _profiled_session(file: Path) -> tuple[OnnxSession, Any]:
    """A session that records what every node takes, and ONNX Runtime's own session inside it."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.enable_profiling = True
    options.profile_file_prefix = str(file.with_suffix(""))
    inner = onnxruntime.InferenceSession(
        read_model_bytes(file), options, providers=["CPUExecutionProvider"]
    )
    return OnnxSession(inner, file), inner


def _time_in_turns(plain: OnnxSession, profiled: OnnxSession, text: Pieces) -> float:
    """The milliseconds of the quickest plain call."""
    seconds = []
    for _ in range(N_TURNS):
        for _ in range(1 + N_IN_A_ROW):
            profiled.logits([text])
        seconds += [_seconds(plain, text) for _ in range(1 + N_IN_A_ROW)][1:]
    return 1000 * min(seconds)


def _seconds(session: OnnxSession, text: Pieces) -> float:
    start = CLOCK()
    session.logits([text])
    return CLOCK() - start


def _runs(events: Sequence[Mapping[str, Any]]) -> list[list[Mapping[str, Any]]]:
    """The nodes of each run, in the order of the runs; a node belongs to the run that began last
    before it.
    """
    starts = sorted(event["ts"] for event in events if event["name"] == "model_run")
    runs: list[list[Mapping[str, Any]]] = [[] for _ in starts]
    for event in events:
        if event.get("cat") == "Node" and event["name"].endswith("_kernel_time"):
            runs[bisect_right(starts, event["ts"]) - 1].append(event)
    return runs


def _by_part(runs: Sequence[Sequence[Mapping[str, Any]]]) -> dict[str, float]:
    """Milliseconds by part: of every node those of its quickest run, less those of the cheapest
    node.
    """
    times: dict[str, list[int]] = defaultdict(list)
    for event in chain.from_iterable(runs):
        times[event["name"]].append(event["dur"])
    overhead = min(map(min, times.values()))  # of the profile itself
    parts: dict[str, float] = defaultdict(float)
    for name, microseconds in times.items():
        # a node in the body of a loop runs several times a run
        n_times = len(microseconds) / len(runs)
        parts[_part_of(name)] += (min(microseconds) - overhead) * n_times / 1000
    return dict(parts)


def _part_of(node: str) -> str:
    found = _NODE.match(node)
    return (found and found[1]) or "other"
