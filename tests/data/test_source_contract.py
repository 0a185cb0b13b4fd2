"""What every source keeps; a new one is tested as soon as it is in the table and has its invented
files in made_files.
"""

import math
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from made_files import MADE

from litotes.core.errors import UserError
from litotes.data.corpus import SPLITS, text_key
from litotes.data.sources import SOURCES, load

OWN_SPLITS = ("twitter", "bicodemix", "sampler", "contrast", "asides", "vader")


@pytest.mark.parametrize("name", SOURCES)
def test_labels_are_words_of_the_task(name: str, make: Callable[..., str]) -> None:
    loaded = load(make(name))
    labels = [
        (loaded.tasks[task], label) for example in loaded for task, label in example.labels.items()
    ]
    assert labels
    for task, label in labels:
        assert (
            isinstance(label, float) and math.isfinite(label)
            if task.is_regression
            else label in task.labels
        )


@pytest.mark.parametrize("name", SOURCES)
def test_no_text_is_empty_and_every_split_is_known(name: str, make: Callable[..., str]) -> None:
    loaded = load(make(name))
    assert len(loaded) > 0
    assert all(example.text.strip() and example.split in SPLITS for example in loaded)
    assert all(example.pair is None or example.pair.strip() for example in loaded)


@pytest.mark.parametrize("name", OWN_SPLITS)
def test_splits_made_here_share_no_text(name: str, make: Callable[..., str]) -> None:
    loaded = load(make(name))
    train, test = (
        {text_key(example.text) for example in loaded if example.split == split}
        for split in ("train", "test")
    )
    assert train
    assert test
    assert not train & test


@pytest.mark.parametrize("name", [name for name in SOURCES if MADE[name].column])
def test_a_missing_column_is_named(name: str, make: Callable[..., str]) -> None:
    column = MADE[name].column
    with pytest.raises(UserError) as caught:
        load(make(name, without=column))
    assert f"There is no column {column!r}." in str(caught.value)
    there = set(next(iter(MADE[name].files.values()))[0]) - {column}
    assert all(other in str(caught.value) for other in there), (
        "the columns that are there are listed"
    )


@pytest.mark.parametrize("name", [name for name in SOURCES if name != "hub"])
def test_reading_writes_nothing(name: str, make: Callable[..., str], tmp_path: Path) -> None:
    spec = make(name)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    load(spec)
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before


@pytest.mark.parametrize("name", SOURCES)
def test_an_unknown_option_is_answered_with_the_known_ones(
    name: str, make: Callable[..., str]
) -> None:
    spec = MADE[name].spec.format(folder="nowhere")
    with pytest.raises(UserError) as caught:
        load(f"{spec}{'&' if '?' in spec else '?'}splitt=train")
    assert "splitt" in str(caught.value)
    assert all(option in str(caught.value) for option in SOURCES[name].options)


@pytest.mark.parametrize("name", SOURCES)
def test_a_source_explains_itself(name: str) -> None:
    source = SOURCES[name]
    assert source.about
    assert source.example.startswith(name)
    assert all(explanation and "\n" not in explanation for explanation in source.options.values())


@pytest.mark.parametrize("name", [name for name, source in SOURCES.items() if source.needs_path])
@pytest.mark.parametrize("colon", ["", ":"])
def test_a_missing_path_is_asked_for_with_an_example(name: str, colon: str) -> None:
    with pytest.raises(UserError, match=f"{name} needs a path: write for example {name}:"):
        load(name + colon)


def test_a_path_for_the_built_in_source_is_refused() -> None:
    with pytest.raises(UserError, match="reads no path"):
        load("sampler:data")


def test_an_unknown_source_is_answered_with_the_nearest() -> None:
    with pytest.raises(
        UserError,
        match=(
            r"There is no source 'bestie'. Did you mean 'besstie'\? Known: asides, besstie,"
            r" bicodemix, contrast, glue/mrpc"
        ),
    ):
        load("bestie:data")


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ("text", "not of the form key=value"),
        ("text=", "not of the form"),
        ("text=a&text=b", "given twice"),
    ],
)
def test_a_garbled_query_is_refused(query: str, told: str) -> None:
    with pytest.raises(UserError, match=told):
        load(f"table:reviews.csv?{query}")


def test_a_home_folder_is_expanded(
    make: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make("table")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert len(load("table:~/reviews.csv?text=review")) == 4


def test_importing_the_layer_is_light() -> None:
    heavy = ("torch", "numpy", "pyarrow", "datasets", "rich")
    code = f"import sys, litotes.data; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
