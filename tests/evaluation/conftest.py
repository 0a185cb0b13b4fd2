from __future__ import annotations

from collections.abc import Iterator

import pytest

from litotes.evaluation.bench import limits


@pytest.fixture(scope="module")
def small_limit() -> Iterator[None]:
    """A limit of the machine that nobody has to wait for."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(limits, "SIZE", 32)
        yield
