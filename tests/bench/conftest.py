from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from bench import limits, probes
from bench.benchmark import Benchmark, open_benchmark
from bench.subject import load_subject


@pytest.fixture(scope="module")
def small_limit() -> Iterator[None]:
    """A limit of the machine that nobody has to wait for."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(probes, "SHAPES", ((8, 16, 16),))
        patch.setattr(limits, "N_ROUNDS", 2)
        yield


@pytest.fixture(scope="module")
def benchmark(request: pytest.FixtureRequest, tiny_folder: Path) -> Iterator[Benchmark]:
    """Who is compared, on the TEXTS of the test's own file."""
    with open_benchmark(load_subject(encoder=str(tiny_folder)), request.module.TEXTS) as found:
        yield found
