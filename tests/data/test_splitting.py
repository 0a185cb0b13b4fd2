"""Hashing, components and the choice among blocks."""

import pytest

from litotes.data.corpus import Block, choose, components, fraction, split_by_hash


def test_fractions_are_fixed_and_spread_evenly() -> None:
    assert fraction("litotes") == pytest.approx(0.7421, abs=1e-4)
    fractions = [fraction(str(n)) for n in range(2000)]
    assert 0 <= min(fractions) < 0.01
    assert 0.99 < max(fractions) < 1
    assert sum(
        split_by_hash(str(n), test_share=0.1) == "test" for n in range(2000)
    ) == pytest.approx(200, abs=40)


def test_components_follow_chains() -> None:
    assert components([["a"], ["b"], ["c", "b"], [], ["a", "c"], ["d"]]) == [0, 0, 0, 3, 0, 5]


@pytest.mark.parametrize("share", [0.001, 0.999])
def test_choose_never_takes_none_or_all(share: float) -> None:
    blocks = [Block("s", n / 3, (n,)) for n in range(3)]
    assert len(choose(blocks, share=share, start=0.5)) == (1 if share < 0.5 else 2)
