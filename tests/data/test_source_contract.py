"""What every source keeps; a new one is tested as soon as it is in the table and has its invented
files in made_files.
"""

import math
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
from made_files import MADE

from litotes.core.errors import UserError
from litotes.data.corpus import SPLITS, text_key
from litotes.data.sources import SOURCES, load

WRONG = tomllib.loads(Path(__file__).with_name("wrong_sources.toml").read_text("utf-8"))
OWN_SPLITS = ("twitter", "bicodemix", "sampler", "contrast", "asides", "vader")


@pytest.mark.parametrize("name", SOURCES)
def test_labels_texts_and_splits(name: str, make: Callable[..., str], tmp_path: Path) -> None:
    spec = make(name)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    loaded = load(spec)
    if name != "hub":
        assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before
    for example in loaded:
        assert example.text.strip()
        assert example.split in SPLITS
        assert example.pair is None or example.pair.strip()
        for task, label in example.labels.items():
            known = loaded.tasks[task].labels
            assert label in known if known else math.isfinite(float(str(label)))
    assert any(example.labels for example in loaded)
    if name in OWN_SPLITS:
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
    with pytest.raises(UserError, match=f"There is no column '{column}'") as caught:
        load(make(name, without=column))
    there = set(next(iter(MADE[name].files.values()))[0]) - {column}
    assert all(other in str(caught.value) for other in there), "those that are there are listed"


@pytest.mark.parametrize("name", SOURCES)
def test_a_source_explains_itself(name: str) -> None:
    source, spec = SOURCES[name], MADE[name].spec.format(folder="nowhere")
    assert source.about
    assert source.example.startswith(name)
    assert all(explanation and "\n" not in explanation for explanation in source.options.values())
    with pytest.raises(UserError, match="splitt") as caught:
        load(f"{spec}{'&' if '?' in spec else '?'}splitt=train")
    assert all(option in str(caught.value) for option in source.options)
    for address in (name, f"{name}:") if source.needs_path else ():
        with pytest.raises(UserError, match=f"{name} needs a path: write for example {name}:"):
            load(address)


@pytest.mark.parametrize(("spec", "told"), WRONG["texts"].items())
def test_a_wrong_source_is_answered(spec: str, told: str) -> None:
    with pytest.raises(UserError, match=told):
        load(spec)


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
