"""The Hub, without the network: a stand-in for `load_dataset`, and the real one on a local folder
where it is installed.
"""

import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from litotes.core.errors import UserError
from litotes.data.sources import load

Hub = Callable[[object], list[tuple[Any, ...]]]


class Split(list[dict[str, Any]]):
    features: dict[str, Any] | None = None


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Hub:
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


def test_splits_and_class_names_are_mapped(hub: Hub) -> None:
    train = Split([{"text": "good", "label": 1}])
    hidden = Split([{"text": "who knows", "label": -1}])
    names = SimpleNamespace(names=["negative", "positive"])
    train.features = hidden.features = {"label": names, "text": object()}
    calls = hub({"train": train, "validation": train, "test": hidden})
    loaded = load("hub:somebody/reviews@v2?label.sentiment=label&subset=films")
    assert calls == [("somebody/reviews", "films", {"revision": "v2", "streaming": True})]
    assert [(example.split, dict(example.labels)) for example in loaded] == [
        ("train", {"sentiment": "positive"}),
        ("valid", {"sentiment": "positive"}),
        ("test", {}),
    ]
    assert loaded.name == "hub:somebody/reviews@v2"
    with pytest.raises(UserError, match=r"There is no column 'lable'. Did you mean 'label'"):
        load("hub:somebody/reviews?label.sentiment=lable")


def test_what_is_wrong_with_a_data_set_is_told(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    source = "hub:somebody/reviews?label.sentiment=label"
    good, bad = {"text": "good", "label": "1"}, {"text": None, "label": "0"}
    hub({"train": Split([good, bad]), "extra": Split([good]), "test": Split([])})
    with pytest.raises(UserError, match=r"'extra' is none of train, valid and test.* only="):
        load(source)
    with pytest.raises(UserError, match=r"no split 'trian'. Did you mean 'train'"):
        load(f"{source}&only=trian")
    with pytest.raises(UserError, match="reviews train, row 2, column 'text' is empty"):
        load(f"{source}&only=train&bad=stop")
    assert len(load(f"{source}&only=train")) == 1
    with pytest.raises(UserError, match="hub:somebody/reviews has no rows"):
        load(f"{source}&only=test")
    hub(ConnectionError("no route\nto the host"))
    with pytest.raises(UserError, match=r"reviews cannot be read \(no route\). Check the name"):
        load(source)
    monkeypatch.setitem(sys.modules, "datasets", None)  # makes the import fail
    with pytest.raises(UserError, match=r"pip install 'litotes\[hub\]'"):
        load(source)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_local_folder_is_read_by_the_real_package(tmp_path: Path, kind: str) -> None:
    pytest.importorskip("datasets", reason="the extra `hub` is not installed")
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.parquet

    write = {"csv": pa.csv.write_csv, "parquet": pa.parquet.write_table}[kind]
    for split, texts in {"train": ["good", "bad"], "test": ["so so"]}.items():
        table = pa.table({"text": texts, "label": [1, 0][: len(texts)]})
        write(table, tmp_path / f"{split}.{kind}")
    loaded = load(f"hub:{tmp_path}?label.sentiment=label")
    assert [(example.text, example.split, example.labels["sentiment"]) for example in loaded] == [
        ("good", "train", "positive"),
        ("bad", "train", "negative"),
        ("so so", "test", "positive"),
    ]
    if kind == "csv":
        (tmp_path / "train.csv").write_text('text,label\n"never closed,1\n')
        with pytest.raises(UserError, match=f"hub:{tmp_path} cannot be read"):
            load(f"hub:{tmp_path}?label.sentiment=label")
