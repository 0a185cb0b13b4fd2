"""The page about translation, from runs that are made up: only what was measured is on it."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from litotes.data.parallel import Pair
from litotes.training.translation.attention_statistics import KINDS
from reproduction.sign_numbers import shown_outputs, summarise_sign
from reproduction.translation import Job, Options, make_recipe
from reproduction.translation_figure import draw
from reproduction.translation_numbers import summarise
from reproduction.translation_page import collect, page

pytest.importorskip("sacrebleu", reason="BLEU needs sacrebleu")

TEST = tuple(
    Pair(f"der hund {word} heute wieder im park", (f"the dog {word} in the park again today",))
    for word in ("rennt", "springt", "bellt", "schläft", "spielt", "frisst")
)


def make_run(weighting: str, seed: int, outputs: list[str], **more: Any) -> dict[str, Any]:
    sparse = weighting != "softmax"
    attention = {
        "density": {kind: [[0.5 if sparse else 1.0] * 2] * 3 for kind in KINDS},
        "diversity": {kind: [0.6 if sparse else 0.4] * 3 for kind in KINDS},
        "alpha": {kind: [[1.3, 1.6]] * 3 if sparse else [] for kind in KINDS},
    }
    options = Options("DATA", "WORK", None, "tf32", None, None, None, 15)
    recipe = make_recipe(Job("multi30k", "de-en", weighting, seed), options)
    return {
        "direction": "de-en",
        "weighting": weighting,
        "seed": seed,
        "recipe": recipe.model_dump(mode="json"),
        "device": "a device",
        "processes": 15,
        "steps": 9,
        "n_weights": 1_000_000,
        "valid_loss": 1.5,
        "attention": attention,
        "outputs": outputs,
    } | more


def make_runs() -> list[dict[str, Any]]:
    perfect = [pair.targets[0] for pair in TEST]
    worse = ["the dog", *perfect[1:]]
    return [
        make_run("learned", 1, perfect),
        make_run("softmax", 0, worse),
        make_run("softmax", 1, perfect),
        make_run("learned", 0, perfect),
    ]


@pytest.fixture
def results(tmp_path: Path) -> Path:
    (tmp_path / "multi30k.json").write_text(json.dumps({"runs": make_runs()}))
    for part, ending in (("train", " one"), ("val", " two"), ("test_2016_flickr", "")):
        german = [f"{pair.source}{ending}\n" for pair in TEST]
        english = [f"{pair.targets[0]}{ending}\n" for pair in TEST]
        (tmp_path / f"{part}.de").write_text("".join(german))
        (tmp_path / f"{part}.en").write_text("".join(english))
    return tmp_path


def test_numbers_are_paired_with_softmax() -> None:
    found = summarise(make_runs(), TEST)
    assert list(found) == ["softmax", "learned"]
    assert found["learned"]["bleu"]["mean"] == pytest.approx(100)
    assert found["learned"]["seeds"] == [0, 1]
    moved = found["learned"]["difference"]["bleu"]
    assert moved["value"] > 0
    assert moved["interval"][0] >= -1e-9
    low, high = moved["over_seeds"]
    assert low < moved["value"] < high
    assert found["softmax"]["difference"] is None
    low, high = found["softmax"]["bleu"]["interval"]
    assert low < found["softmax"]["bleu"]["mean"] < high
    assert found["learned"]["attention"]["alpha"]["across"] == [[1.3, 1.6, 1.3, 1.6]] * 3


def test_the_page_has_what_was_measured_and_nothing_else(results: Path) -> None:
    numbers = collect(results, str(results), None, None)
    written = page(numbers)
    assert "## German → English" in written
    assert "English → German" not in written
    assert "Sarcasm SIGN" not in written
    assert "ms (" not in written
    assert "| heads are more diverse | learned α | in 9 of 9 attentions; 0.60 bits" in written
    assert "no loss seen" in written
    assert "layers prefer different α" in written
    assert "DATA" not in json.dumps(numbers)
    assert all(len(line) <= 100 for line in written.splitlines() if line[:1] != "|")
    assert draw(numbers["multi30k"]["de-en"]).axes
    timed = {"device": "a device", "seconds_a_step": {"softmax": 0.01, "learned": 0.02}}
    assert "learned α 20.0 ms (2.00 times)" in " ".join(page(numbers | {"time": timed}).split())


class Judge:
    """Finds good what has no `not` in it."""

    def predict(self, texts: list[str]) -> list[Any]:
        labels = ["negative" if "not" in text else "positive" for text in texts]
        return [
            SimpleNamespace(answers={"sentiment": SimpleNamespace(label=one)}) for one in labels
        ]


def test_interpretations_stand_beside_saying_the_same() -> None:
    test = tuple(
        Pair(f"{word} is such fun for all of us", (f"{word} is not such fun for all of us",) * 2)
        for word in ("rain", "snow", "hail", "fog")
    )
    outputs = [test[0].targets[0], *(pair.source for pair in test[1:])]
    run = make_run("softmax", 0, outputs, direction="")
    found = summarise_sign([run], test, Judge())
    assert found["people"]["flipped"] == 1
    assert found["copy"]["changed"] == found["copy"]["agrees"] == 0
    assert found["softmax"]["changed"] == found["softmax"]["agrees"] == 0.25
    assert found["softmax"]["bleu"]["mean"] > found["copy"]["bleu"]["value"]
    shown = shown_outputs([run], test)
    assert [line["softmax"] for line in shown] == outputs


def test_every_way_of_sign_stands_on_the_page(results: Path) -> None:
    test = tuple(
        Pair(
            f"{word} isn't such fun for us , or is it",
            (f"{word} isn't fun for us , it is not", f"{word} isn't such fun for us , or is it"),
        )
        for word in ("rain", "snow", "hail", "fog")
    )
    sources = [pair.source for pair in test]
    spaced = [source.replace("'", " ' ") for source in sources]
    outputs = {"softmax": [pair.targets[0] for pair in test], "plain": sources, "minilm": spaced}
    runs = [make_run(way, 0, outputs[way], direction="") for way in ("minilm", "softmax", "plain")]
    found = summarise_sign(runs, test, Judge())
    assert list(found) == ["copy", "softmax", "plain", "minilm", "people"]
    assert found["plain"]["less_copy"]["bleu"] == {"value": 0.0, "interval": [0.0, 0.0]}
    assert found["minilm"]["less_copy"]["bleu"]["interval"][1] < 0
    assert found["minilm"]["respaced_bleu"] == pytest.approx(found["copy"]["bleu"]["value"])
    assert found["people"]["tweets_kept"] == 1
    numbers = collect(results, str(results), None, None)
    written = page(numbers | {"sign": found, "shown": shown_outputs(runs, test)})
    assert "| plain texts too | 1 | 100.0 | +0.0 (+0.0 to +0.0)" in written
    assert "By BLEU no way is better than the tweet itself: **missed**" in written
    assert "| a person | softmax | plain texts too | plain texts too, `minilm` |" in written
    prose = [line for line in written.splitlines() if not line.startswith("|")]
    assert max(map(len, prose)) <= 110
