"""What a table seems to hold: texts, labels, splits, what to compare by, ids."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from litotes.core.errors import UserError
from litotes.data.inspection import find_text_column, inspect_table


def write(path: Path, columns: dict[str, list[str]]) -> Path:
    with path.open("w", newline="") as stream:
        rows = csv.writer(stream)
        rows.writerow(columns)
        rows.writerows(zip(*columns.values(), strict=True))
    return path


def columns(**more: list[str]) -> dict[str, list[str]]:
    """Forty rows: numbers, texts of four words and a label."""
    texts = [f"the tea number {n}" for n in range(40)]
    return {"id": [str(n) for n in range(40)], "review": texts, "mood": ["bad", "good"] * 20} | more


def test_every_column_finds_its_part(tmp_path: Path) -> None:
    more = {
        "part": ["train"] * 30 + ["Test"] * 10,
        "shop": (["north"] * 3 + ["south"]) * 10,
        "clerk": ["Ann", "Bo", "Cy", "Di", "Ed"] * 8,  # eight of each: too few to compare
    }
    found = inspect_table(write(tmp_path / "t.csv", columns(**more)))
    assert (found.text.name, found.label.name, found.n_rows) == ("review", "mood", 40)
    assert found.split is not None
    assert found.split.name == "part"
    assert found.compare is not None
    assert found.compare.name == "shop"
    assert found.ids == ("id",)
    assert found.text.words_a_cell == 4
    assert not found.is_number
    assert find_text_column(found.path) == "review"


def test_a_part_has_at_least_ten_texts_and_no_gap(tmp_path: Path) -> None:
    few = columns(clerk=["Ann"] * 31 + ["Bo"] * 9)
    assert inspect_table(write(tmp_path / "few.csv", few)).compare is None
    ten = columns(clerk=["Ann"] * 30 + ["Bo"] * 10)
    found = inspect_table(write(tmp_path / "ten.csv", ten)).compare
    assert found is not None
    assert found.name == "clerk"
    gap = columns(clerk=["Ann"] * 29 + ["Bo"] * 10 + [" "])
    assert inspect_table(write(tmp_path / "gap.csv", gap)).compare is None
    # a usual name comes first, then words before numbers
    both = columns(size=["1", "2"] * 20, clerk=["Ann", "Bo"] * 20, year=["1999", "2000"] * 20)
    found = inspect_table(write(tmp_path / "both.csv", both)).compare
    assert found is not None
    assert found.name == "year"


@pytest.mark.parametrize(("n", "is_number"), [(20, False), (21, True)])
def test_more_than_twenty_numbers_are_measured_not_told_apart(
    tmp_path: Path, n: int, is_number: bool
) -> None:
    table = columns()
    del table["mood"]
    rated = [f"{place % n / 2}" for place in range(2 * n)]
    table |= {"review": [f"the tea number {place}" for place in range(2 * n)], "stars": rated}
    table["id"] = [str(place) for place in range(2 * n)]
    found = inspect_table(write(tmp_path / "t.csv", table))
    assert (found.label.name, found.is_number) == ("stars", is_number)


def test_what_is_not_clear_is_asked_for_with_what_there_is(tmp_path: Path) -> None:
    seven = [f"kind{n % 7}" for n in range(40)]
    table = {"review": columns()["review"], "one": seven}
    table["two"] = [f"k{n % 6}" for n in range(40)]
    path = write(tmp_path / "t.csv", table)
    with pytest.raises(UserError) as caught:
        inspect_table(path)
    told = str(caught.value)
    assert "2 columns may be the labels" in told
    assert "--label" in told
    assert "kind5, …)" in told
    assert "kind6" not in told
    assert "k5)" in told  # and six of six
    assert inspect_table(path, label="two").label.name == "two"
    with pytest.raises(UserError, match="Did you mean 'two'"):
        inspect_table(path, label="tow")
    bare = write(tmp_path / "bare.csv", {"id": table["one"]})
    with pytest.raises(UserError, match=r"no column looks like texts.*--text"):
        inspect_table(bare)
    assert find_text_column(bare) is None
    alone = write(tmp_path / "alone.csv", {"review": table["review"]})
    with pytest.raises(UserError, match=r"no other column.*--label"):
        inspect_table(alone)
