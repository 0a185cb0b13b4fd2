from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from litotes.bench import limits
from litotes.bench.contest import Contest, contest
from litotes.bench.subject import subject_of


@pytest.fixture(scope="module")
def small_limit() -> Iterator[None]:
    """A limit of the machine that nobody has to wait for."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(limits, "SIZE", 32)
        yield


@pytest.fixture(scope="module")
def everybody(request: pytest.FixtureRequest, tiny_folder: Path) -> Iterator[Contest]:
    """Who is compared, on the TEXTS of the test's own file."""
    with contest(subject_of(encoder=str(tiny_folder)), request.module.TEXTS) as found:
        yield found
