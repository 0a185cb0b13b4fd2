"""The Hub, without the network: a stand-in for `load_dataset`, and the real one on a local folder
where it is installed.
"""

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from litotes.core.errors import UserError
from litotes.data.sources import load


@dataclass(frozen=True)
class Classes:
    names: list[str]


@dataclass(frozen=True)
class Split:
    rows: list[dict[str, Any]]
    features: dict[str, Any] | None = None

    def __iter__(self) -> Iterator[dict[str, Any]]:
        yield from self.rows


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Callable[[object], list[tuple[Any, ...]]]:
    """Puts a data set (or an exception) on a Hub that is not there; the calls are noted."""

    def put(answer: object) -> list[tuple[Any, ...]]:
        calls = []

        def load_dataset(*arguments: object, **options: object) -> object:
            calls.append((*arguments, options))
            if isinstance(answer, Exception):
                raise answer
            return answer

        module = ModuleType("datasets")
        module.load_dataset = load_dataset  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, "datasets", module)
        return calls

    return put


def test_splits_and_class_names_are_mapped(hub: Callable[[object], list[tuple[Any, ...]]]) -> None:
    features = {"label": Classes(["negative", "positive"]), "text": object()}
    train = Split([{"text": "good", "label": 1}], features)
    hidden = Split([{"text": "who knows", "label": -1}], features)
    calls = hub({"train": train, "validation": train, "test": hidden})
    loaded = load("hub:somebody/reviews@v2?label.sentiment=label&subset=films")
    assert calls == [("somebody/reviews", "films", {"revision": "v2", "streaming": True})]
    assert [(example.split, dict(example.labels)) for example in loaded] == [
        ("train", {"sentiment": "positive"}),
        ("valid", {"sentiment": "positive"}),
        ("test", {}),
    ]
    assert loaded.name == "hub:somebody/reviews@v2"


def test_a_split_of_another_name_must_be_left_out(
    hub: Callable[[object], list[tuple[Any, ...]]],
) -> None:
    hub(
        {
            "train": Split([{"text": "good", "label": "1"}]),
            "extra": Split([{"text": "odd", "label": "0"}]),
        }
    )
    with pytest.raises(
        UserError,
        match=r"the split 'extra' is none of train, valid and test. Leave it out with only=",
    ):
        load("hub:somebody/reviews?label.sentiment=label")
    assert load("hub:somebody/reviews?label.sentiment=label&only=train").splits() == ("train",)
    with pytest.raises(UserError, match=r"There is no split 'trian'. Did you mean 'train'"):
        load("hub:somebody/reviews?label.sentiment=label&only=trian")


def test_rows_are_checked_as_in_a_table(hub: Callable[[object], list[tuple[Any, ...]]]) -> None:
    hub({"train": Split([{"text": "good", "label": "1"}, {"text": None, "label": "0"}])})
    with pytest.raises(
        UserError, match="hub:somebody/reviews train, row 2, column 'text' is empty"
    ):
        load("hub:somebody/reviews?label.sentiment=label&bad=stop")
    assert len(load("hub:somebody/reviews?label.sentiment=label")) == 1
    with pytest.raises(UserError, match=r"There is no column 'lable'. Did you mean 'label'"):
        load("hub:somebody/reviews?label.sentiment=lable")


def test_a_data_set_that_cannot_be_reached_is_explained(
    hub: Callable[[object], list[tuple[Any, ...]]],
) -> None:
    hub(ConnectionError("no route\nto the host"))
    with pytest.raises(
        UserError,
        match=r"hub:somebody/reviews cannot be read \(no route\). Check the name and the network",
    ):
        load("hub:somebody/reviews")


def test_the_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "datasets", None)  # makes the import fail
    with pytest.raises(UserError, match=r"pip install 'litotes\[hub\]'"):
        load("hub:somebody/reviews")


def test_a_data_set_without_rows_is_refused(hub: Callable[[object], list[tuple[Any, ...]]]) -> None:
    hub({"train": Split([])})
    with pytest.raises(UserError, match="hub:somebody/reviews has no rows"):
        load("hub:somebody/reviews")


@pytest.mark.slow
def test_a_damaged_local_folder_is_explained(tmp_path: Path) -> None:
    pytest.importorskip("datasets", reason="the extra `hub` is not installed")
    (tmp_path / "train.csv").write_text('text,label\n"never closed,1\n')
    with pytest.raises(UserError, match=f"hub:{tmp_path} cannot be read"):
        load(f"hub:{tmp_path}?label.sentiment=label")


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_local_folder_is_read_by_the_real_package(tmp_path: Path, kind: str) -> None:
    pytest.importorskip("datasets", reason="the extra `hub` is not installed")
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.parquet

    write = {"csv": pa.csv.write_csv, "parquet": pa.parquet.write_table}[kind]
    for split, texts in {"train": ["good", "bad"], "test": ["so so"]}.items():
        write(
            pa.table({"text": texts, "label": [1, 0][: len(texts)]}), tmp_path / f"{split}.{kind}"
        )
    loaded = load(f"hub:{tmp_path}?label.sentiment=label")
    assert [(example.text, example.split, example.labels["sentiment"]) for example in loaded] == [
        ("good", "train", "positive"),
        ("bad", "train", "negative"),
        ("so so", "test", "positive"),
    ]
