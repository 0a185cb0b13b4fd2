"""What gpu.json says (docs/results/performance/), and what was promised of a GPU before it was
measured.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from readme_table import ROOT, markdown

RESULTS = ROOT / "docs" / "results" / "performance" / "gpu.json"
LARGE, SMALL = "classify", "minilm"
DENSE, PRUNED, CASCADE = "litotes-dense", "litotes-pruned", "litotes-cascade"
COMPILED = "hf-sdpa-padded-compiled-b"


@dataclass(frozen=True)
class Measured:
    """What gpu.json says; None where it says nothing."""

    content: Mapping[str, Any]

    @classmethod
    def read(cls, file: Path = RESULTS) -> Measured | None:
        return cls(json.loads(file.read_text("utf-8"))) if file.is_file() else None

    def lines(self, group: str) -> dict[str, Mapping[str, Any]]:
        return {line["name"]: line for line in self.content["lines"] if line["group"] == group}

    def number(self, group: str, line: str, name: str = "ms") -> float | None:
        return self.lines(group).get(line, {}).get(name)

    def ratio(self, group: str, line: str, other: str) -> float | None:
        ratio = self.lines(group).get(line, {}).get("ratios", {}).get(other)
        return None if ratio is None else ratio["middle"]

    def facts(self, group: str) -> dict[str, Mapping[str, float]]:
        found: dict[str, Mapping[str, float]] = self.group(group).get("facts", {})
        return found

    def fact(self, group: str, line: str, name: str) -> float | None:
        return self.facts(group).get(line, {}).get(name)

    def group(self, name: str) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self.content["groups"].get(name, {})
        return found


@dataclass(frozen=True)
class Aim:
    """What was promised before it was measured. is_limit: whether the number must not be larger."""

    words: str
    wanted: float
    find: Callable[[Measured], float | None]
    is_limit: bool = False

    def row(self, measured: Measured) -> list[str] | None:
        found = self.find(measured)
        if found is None:
            return None
        is_met = found <= self.wanted if self.is_limit else found >= self.wanted
        sign = "at most" if self.is_limit else "at least"
        words = "met" if is_met else "**missed**"
        return [self.words, f"{sign} {short(self.wanted)}", short(found), words]


def _against_compiled(measured: Measured) -> float | None:
    """Against the faster of the compiled opponents."""
    speeds = [
        line["per_second"]
        for name, line in measured.lines(LARGE).items()
        if name.startswith(COMPILED)
    ]
    ours = measured.number(LARGE, DENSE, "per_second")
    return ours / max(speeds) if ours and speeds else None


def _worst_bucket(kind: str) -> Callable[[Measured], float | None]:
    def find(measured: Measured) -> float | None:
        found = []
        for size in bucket_sizes(measured):
            own, dense = f"litotes-{kind}-p{size}", f"{DENSE}-p{size}"
            found.append(measured.ratio("buckets", own, dense))
        known = [ratio for ratio in found if ratio is not None]
        return min(known) if known else None

    return find


def bucket_sizes(measured: Measured) -> list[int]:
    """Those that were measured."""
    return sorted({int(name.rpartition("-p")[2]) for name in measured.lines("buckets")})


def _times(group: str, line: str, other: str) -> Callable[[Measured], float | None]:
    return lambda measured: measured.ratio(group, line, other)


def _learned_against_fixed(measured: Measured) -> float | None:
    learned = measured.number("weightings", "litotes-entmax-learned-n512")
    fixed = measured.number("weightings", "litotes-entmax-1.5-n512")
    return learned / fixed if learned and fixed else None


def _number(group: str, line: str, name: str = "ms") -> Callable[[Measured], float | None]:
    return lambda measured: measured.number(group, line, name)


def _fact(group: str, line: str, name: str) -> Callable[[Measured], float | None]:
    return lambda measured: measured.fact(group, line, name)


AIMS = (
    Aim("dense, texts a second", 45_000, _number(LARGE, DENSE, "per_second")),
    Aim("dense against Hugging Face compiled, padded", 5, _against_compiled),
    Aim("dense MiniLM, texts a second", 120_000, _number(SMALL, DENSE, "per_second")),
    Aim("pruned to 2.5 times fewer operations against dense", 1.7, _times(LARGE, PRUNED, DENSE)),
    Aim("cascade against dense", 1, _times(LARGE, CASCADE, DENSE)),
    Aim("pruned against dense, at its worst bucket", 1, _worst_bucket("pruned")),
    Aim("cascade against dense, at its worst bucket", 1, _worst_bucket("cascade")),
    Aim("training step, dense against Hugging Face", 2, _times("training", DENSE, "hf-padded")),
    Aim("training step, pruned against dense", 1.25, _times("training", PRUNED, DENSE)),
    Aim("entmax 1.5, 512 pieces, ms", 0.35, _number("weightings", "litotes-entmax-1.5-n512"), True),
    Aim("entmax 1.5, 128 pieces, ms", 0.12, _number("weightings", "litotes-entmax-1.5-n128"), True),
    Aim("learned α, its time against α = 1.5", 1.15, _learned_against_fixed, True),
    Aim(
        "entmax 1.5 with backward against AdaSplash, 512 pieces",
        5,
        _times("weightings", "litotes-entmax-1.5-n512-backward", "adasplash-n512-backward"),
    ),
    Aim("top_k, 512 pieces, ms", 0.5, _number("weightings", "litotes-top_k-n512"), True),
    Aim(
        "importance, its share on top of attention",
        0.15,
        _fact("importance", "attention-received", "extra_share"),
        True,
    ),
    Aim(
        "selection, its share of a pruned pass",
        0.05,
        _fact("launches", "bucket-pruned", "selection_share"),
        True,
    ),
    Aim(
        "labels of 1,000 that bfloat16 changes, trained model",
        0,
        _fact("precision", "trained-bfloat16", "differing_per_1000"),
        True,
    ),
    Aim(
        "labels of 1,000 that float16 changes, trained model",
        0,
        _fact("precision", "trained-float16", "differing_per_1000"),
        True,
    ),
)


def aims(measured: Measured) -> str:
    """A table of those that can be judged."""
    rows = [aim.row(measured) for aim in AIMS]
    known = [row for row in rows if row is not None]
    return markdown(["aim", "wanted", "measured", ""], known) if known else ""


def short(number: float) -> str:
    """Three digits, or all before the point."""
    return f"{number:,.0f}" if abs(number) >= 1000 else f"{number:.3g}"
