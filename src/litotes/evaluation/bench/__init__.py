"""What can be measured side by side. A new bench is one file and one line in `BENCHES`, or in `CONTESTS`."""

from collections.abc import Callable

from litotes.evaluation.bench.attention import attention
from litotes.evaluation.bench.classify import classify
from litotes.evaluation.bench.effective import effective
from litotes.evaluation.bench.entmax import entmax
from litotes.evaluation.bench.growth import growth
from litotes.evaluation.bench.latency import latency
from litotes.evaluation.bench.lines import Bench
from litotes.evaluation.bench.pcgrad import pcgrad
from litotes.evaluation.bench.profile import profile
from litotes.evaluation.bench.train import train

CONTESTS: dict[str, Callable[..., Bench]] = {
    "classify": classify,
    "latency": latency,
    "profile": profile,
    "growth": growth,
}
"""From texts to answers, by all who take part (contest.py)."""

BENCHES: dict[str, Callable[..., Bench]] = {
    "pcgrad": pcgrad,
    "entmax": entmax,
    "effective": effective,
    "attention": attention,
    "train": train,
}
"""Parts of the work, each with opponents of its own, from texts."""
