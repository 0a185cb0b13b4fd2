"""What can be measured side by side.

A new bench is one file and one line in `MODEL_BENCHES` or in `PART_BENCHES`; those of a GPU have a
package and a table of their own (gpu/groups.py).
"""

from collections.abc import Callable

from litotes.bench.attention import attention
from litotes.bench.classify import classify
from litotes.bench.effective import effective
from litotes.bench.entmax import entmax
from litotes.bench.growth import growth
from litotes.bench.latency import latency
from litotes.bench.lines import BenchResult
from litotes.bench.pcgrad import pcgrad
from litotes.bench.profile import profile
from litotes.bench.train import train

MODEL_BENCHES: dict[str, Callable[..., BenchResult]] = {
    "classify": classify,
    "latency": latency,
    "profile": profile,
    "growth": growth,
}
"""From texts to answers, by all models that are compared (benchmark.py)."""

PART_BENCHES: dict[str, Callable[..., BenchResult]] = {
    "pcgrad": pcgrad,
    "entmax": entmax,
    "effective": effective,
    "attention": attention,
    "train": train,
}
"""Parts of the work, each with baselines of its own, from texts."""
