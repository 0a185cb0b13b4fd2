"""Lines of a bench: medians, spreads, ratios by round, shares of the limit, and what JSON keeps of
them.
"""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from bench import probes
from bench.lines import MOST_WRITTEN, BenchResult, Line
from litotes.core.machine import n_cores


def line(name: str, *ms: float, **more: object) -> Line:
    return Line("group", name, sorted(ms)[len(ms) // 2], 1.0, ms, **more)  # type: ignore[arg-type]


def test_a_ratio_pairs_what_ran_in_the_same_round() -> None:
    bench = BenchResult("slow", (line("slow", 10, 100, 20), line("quick", 5, 10, 10)), {})
    ratio = bench.ratios(bench.lines[1])["slow"]
    # 2, 10 and 2: that of the medians would be 2 as well, its spread not
    assert (ratio.middle, ratio.low, ratio.high) == (2.0, 2.0, 6.0)
    assert bench.ratios(Line("group", "none", 1.0, 1.0, (1.0, 1.0, 1.0), against=("gone",))) == {}


def test_no_line_is_beyond_the_limit() -> None:
    limit = line("limit", 4.0, 2.0, 3.0, flops=100, against=())
    slow = line("slow", 9.0, 8.0, 10.0, flops=100, limit="limit")
    # 100 operations a millisecond where the product alone showed 50: the machine can do as much
    swift = line("swift", 2.0, 1.0, 3.0, flops=100, limit="limit")
    other = line("other", 0.1, 0.1, 0.1, flops=100, limit="another")
    bench = BenchResult("slow", (slow, swift, other, limit), {})
    assert bench.share_of_limit(swift) == pytest.approx((100 / 2) / (100 / 1))
    assert bench.share_of_limit(slow) == pytest.approx((100 / 9) / (100 / 1), abs=1e-4)


@pytest.mark.parametrize("make_probes", [probes.float32_probes, probes.int8_probes])
def test_probes_are_of_every_library_and_shape(
    make_probes: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    shapes = ((4, 8, 16), (8, 16, 8))
    monkeypatch.setattr(probes, "SHAPES", shapes)
    with make_probes(n_cores() + 1) as found:
        for name, probe in found.items():
            probe.act(None)
            sizes = next(sizes for sizes in shapes if " × ".join(map(str, sizes)) in name)
            n_products = probes.N_IN_A_ROW * (n_cores() + 1) if "a core" in name else 1
            assert probe.flops == 2 * math.prod(sizes) * n_products
    libraries = {name.partition(",")[0] for name in found}
    assert libraries - {"openvino"} == {"onnxruntime", "torch"}, (
        "numpy has as many threads as cores"
    )
    assert len([name for name in found if name.startswith("onnxruntime")]) == 2 * len(shapes)


def test_json_has_the_spread_and_leaves_hundreds_of_rounds_out() -> None:
    few, many = (
        line("few", 1.0, 2.0, 3.0, 4.0, 5.0),
        line("many", *range(1, 202), against=("many",), flops=7),
    )
    written = {
        one["name"]: one
        for one in BenchResult("few", (few,), {}).as_json()
        + BenchResult("many", (many,), {}).as_json()
    }
    assert (written["few"]["ms_low"], written["few"]["ms_high"]) == (2.0, 4.0)
    assert written["few"]["ms_all_rounds"] == (1.0, 2.0, 3.0, 4.0, 5.0)
    assert "ms_p99" not in written["few"]
    assert MOST_WRITTEN < written["many"]["n_rounds"] == 201
    assert written["many"]["ms_p99"] == 199
    assert Line.from_json(written["many"]).best_rate == many.best_rate
    assert "ms_all_rounds" not in written["many"]
    json.dumps(written)
