"""`litotes train` of a translation, `translate` and `interpret` as they are typed; what a
translation looked at.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from made_pairs import make_recipe, make_texts

from litotes.cli.main import main
from litotes.core.errors import UserError
from litotes.training.recipe import SearchSettings
from litotes.training.run import train
from litotes.training.translation import Translation, Translator
from litotes.training.translation.attention import draw_source_attention, explain_translation
from litotes.training.translation.translator import Found, interpret

RECIPE = """
kind = "translation"
[data]
source = "tsv:pairs.tsv?test=0.1"
[model]
n_layers = 1
width = 16
n_attention_heads = 2
n_vocabulary = 270
max_pieces = 16
[training]
epochs = 1
batch_pieces = 512
"""


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Nobody may write there."""
    folder = tmp_path_factory.mktemp("translate") / "model"
    recipe = make_recipe(training={"epochs": 1, "batch_pieces": 256})
    return train(recipe, folder, corpus=make_texts(120), device="cpu").folder


@pytest.fixture(scope="module")
def translator(model: Path) -> Translator:
    return Translator.load(model, device="cpu")


def test_a_recipe_becomes_a_model_that_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("recipe.toml").write_text(RECIPE)
    pairs = [f"{pair.source}\t{pair.targets[0]}\n" for pair in make_texts(60).train]
    Path("pairs.tsv").write_text("".join(pairs))
    assert main(["train", "recipe.toml", "--out", "run", "--json", "--device", "cpu"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["model"] == "run"
    assert printed["test"]["n"] == 5
    assert main(["translate", "ab cd", "--model", "run", "--json", "--beams", "2"]) == 0
    (answer,) = json.loads(capsys.readouterr().out)["translations"]
    assert answer["text"] == "ab cd"
    assert answer["truncated"] is False
    assert main(["train", "recipe.toml", "--out", "run"]) == 2
    assert "already holds a trained model" in capsys.readouterr().err


def test_lines_are_translated_as_they_come(
    model: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    given, out = tmp_path / "given.txt", tmp_path / "out.txt"
    given.write_text("ab cd\nef gh ij\nkl\n")
    line = ["translate", "--model", str(model)]
    assert main([*line, "--file", str(given)]) == 0
    by_file = capsys.readouterr().out
    monkeypatch.setattr("sys.stdin", StringIO(given.read_text()))
    assert main(line) == 0
    assert capsys.readouterr().out == by_file
    assert len(by_file.splitlines()) == 3
    scored = [*line, "--file", str(given), "--references", str(given), "--out", str(out)]
    assert main(scored) == 0
    assert "BLEU" in capsys.readouterr().out
    assert out.read_text() == by_file
    monkeypatch.setattr("sys.stdin", StringIO("ab\n\ncd\n"))
    assert main(line) == 2
    assert "line 2 is empty" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["ab", "--file", "x"], "not both"),
        (["ab", "cd", "--explain", "x.svg"], "exactly one"),
        (["ab", "--explain", "x.pdf"], ".svg, .png or .json"),
        (["ab", "--explain", "x.svg", "--out", "x.txt"], "leave the others out"),
        (["ab", "--explain", "x.svg", "--references", "REFERENCES"], "leave the others out"),
        ([" "], "Text 1 is empty"),
        (["ab", "--references", "REFERENCES"], "2 lines for 1 texts"),
    ],
)
def test_what_cannot_be_is_said(
    words: list[str], said: str, model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "two.txt").write_text("a\nb\n")
    given = [str(tmp_path / "two.txt") if word == "REFERENCES" else word for word in words]
    assert main(["translate", *given, "--model", str(model)]) == 2
    assert said in capsys.readouterr().err


def test_streams_answer_in_order(translator: Translator) -> None:
    texts = ["ab cd ef", "gh", "ij kl", "ab", "cd gh ij kl"]
    one_by_one = [translator.translate([text])[0] for text in texts]
    for at_once in (1, 2, 10):
        found = list(translator.stream(texts, at_once=at_once))
        assert [one.output for one in found] == [one.output for one in one_by_one]
        for one, other in zip(found, one_by_one, strict=True):
            assert one.score == pytest.approx(other.score, abs=1e-4)


def test_many_beams_are_searched_for_few_texts_at_a_time(
    translator: Translator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The memory of a search grows with its hypotheses, not with its texts."""
    sizes: list[int] = []

    def find(sources: list[Any], search: SearchSettings) -> list[Found]:
        sizes.append(len(sources))
        return [Found((), 0.0)] * len(sources)

    monkeypatch.setattr(translator, "_find_batch", find)
    for beams, most in ((1, 64), (8, 64), (200, 2), (1000, 1)):
        sizes.clear()
        translator.translate(["ab"] * 130, beams=beams)
        assert (sum(sizes), max(sizes)) == (130, most)
    for wrong in ({"beams": 0}, {"beams": 1001}, {"length_penalty": -1.0}):
        with pytest.raises(UserError, match=next(iter(wrong))):
            translator.translate(["ab"], **wrong)


def test_an_output_is_one_line_of_the_file(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = [Translation("a", "one\ntwo", 0.0, False), Translation("b", "three", 0.0, False)]
    monkeypatch.setattr(Translator, "translate", lambda *given, **settings: broken)
    out = tmp_path / "out.txt"
    assert main(["translate", "a", "b", "--model", str(model), "--out", str(out)]) == 0
    assert out.read_text() == "one two\nthree\n"


def test_the_attention_of_a_translation_adds_up(translator: Translator) -> None:
    translation = Translation("ab cd", "kl ij gh", 0.0, False)
    found = explain_translation(translator, translation)
    assert found.source == ("[CLS]", "ab", "cd", "[SEP]")
    assert found.target == ("kl", "ij", "gh", "[SEP]")
    standard = found.maps["standard"]
    assert standard.shape == found.maps["effective"].shape == (1, 2, 4, 4)
    torch.testing.assert_close(standard.sum(-1), torch.ones(1, 2, 4))
    assert draw_source_attention(found).axes


def test_effective_maps_leave_out_what_no_output_sees(translator: Translator) -> None:
    """More source pieces than an attention head is wide: some of the weights cannot matter."""
    text = "abcdefghijklmnopqrstuv"
    found = explain_translation(translator, Translation(text, "ab", 0.0, False))
    assert not torch.allclose(found.maps["standard"], found.maps["effective"], atol=1e-4)


def test_explanations_are_written(model: Path, tmp_path: Path) -> None:
    for name in ("why.json", "why.svg"):
        line = ["translate", "ab cd", "--model", str(model), "--explain", str(tmp_path / name)]
        assert main(line) == 0
    content = json.loads((tmp_path / "why.json").read_text())
    assert len(content["mean"]["effective"]) == len(content["target"])
    assert (tmp_path / "why.svg").read_text().startswith("<?xml")


class Judge:
    """Takes every text with an `a` for sarcastic."""

    def __init__(self) -> None:
        self.tasks = {"sarcasm": SimpleNamespace(labels=("literal", "sarcastic"))}

    def predict(self, texts: list[str]) -> Iterator[Any]:
        for text in texts:
            label = "sarcastic" if "a" in text else "literal"
            probabilities = {"literal": 0.2, "sarcastic": 0.8}
            answer = SimpleNamespace(label=label, probabilities=probabilities)
            yield SimpleNamespace(answers={"sarcasm": answer})


class Echo:
    """Says the same again, or one thing to a longer text."""

    def translate(self, texts: list[str], *, beams: int | None = None) -> list[Translation]:
        return [
            Translation(one, "no" if len(one) > 3 else one.upper(), 0.0, False) for one in texts
        ]


def test_a_text_means_what_it_says_unless_both_say_otherwise() -> None:
    found = interpret(["what a day", "the end", "ah"], Echo(), Judge())  # type: ignore[arg-type]
    assert [one.meaning for one in found] == ["no", None, None]
    assert [one.why_same for one in found] == [
        None,
        "the judge sees no sarcasm",
        "the model would change nothing",
    ]
    assert found[0].sarcasm == 0.8
    assert found[1].as_json()["meaning"] == "same as said"
    (alone,) = interpret(["the end"], Echo(), None)  # type: ignore[arg-type]
    assert alone.meaning == "no"
    blind = SimpleNamespace(tasks={"sentiment": SimpleNamespace(labels=("negative", "positive"))})
    with pytest.raises(UserError, match="--judge none"):
        interpret(["the end"], Echo(), blind)  # type: ignore[arg-type]


def test_interpret_asks_the_built_in_model(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    texts = ["Lovely. Another delay. Just what I needed.", "The tea is fine."]
    assert main(["interpret", *texts, "--model", str(model), "--json", "--device", "cpu"]) == 0
    first, second = json.loads(capsys.readouterr().out)
    assert first["sarcasm"] > 0.5 > second["sarcasm"]
    assert second["meaning"] == "same as said"
    assert main(["interpret", texts[1], "--model", str(model), "--judge", "none"]) == 0
    assert texts[1] in capsys.readouterr().out
