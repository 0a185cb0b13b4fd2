"""Texts that leave early: the rule is checked, saved and read again; each text is as if it were
alone and gone from the packed tensor, with every pruning; the table before the first layer is the
same by torch and beside an ONNX file.
"""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from made_exits import N_OUTPUTS, N_PIECES, PROMISE, exits_of, table_of, with_exits, with_table
from tiny_exports import export_unmeasured
from tiny_models import TEXTS, model_of

from litotes.cli.main import main
from litotes.core.errors import UserError
from litotes.core.values import Task
from litotes.encoder import pretrained
from litotes.encoder.attention import PRUNINGS
from litotes.encoder.encoder import Encoder
from litotes.encoder.families import EncoderSpec
from litotes.encoder.layout import Batch
from litotes.encoder.packing import pack
from litotes.encoder.tokenizer import Pieces
from litotes.encoder.walk import Encoding, GoOn
from litotes.exporting.model_graph import build_onnx, write_export
from litotes.model.calibration import Calibration
from litotes.model.checkpoint import load_model, save_model
from litotes.model.classifier import Classifier
from litotes.model.exits import (
    STORED,
    TABLE,
    Exits,
    Outputs,
    Promise,
    StaticTier,
    Sureness,
    exits_from_json,
    label_margins,
    parse_table,
)
from litotes.model.folder import hash_folder, open_model
from litotes.model.runtime import compute_outputs
from litotes.prediction.answers import as_json
from litotes.prediction.predictor import Predictor

RULE = Exits((1, 3), {layer: {"sentiment": Sureness(-1.0, 2.0)} for layer in (1, 3)}, 0.9, PROMISE)


def test_margins_are_distances_from_another_label() -> None:
    logits = np.random.default_rng(0).normal(size=(50, 2)).astype(np.float32)
    plain, decided = Calibration(2.0), Calibration(2.0, 0.7, 9)
    for calibration in (plain, decided):
        labels, _ = calibration.apply(logits)
        margins = label_margins(logits, calibration)
        for step, flips in ((0.999, False), (1.001, True)):
            moved = logits.astype(np.float64)
            moved[np.arange(50), labels] -= step * margins
            assert (calibration.apply(moved)[0] != labels).all() == flips


def test_the_threshold_is_a_chance() -> None:
    logits = {"sentiment": np.array([[0.0, 1.0], [0.0, 2.0]])}
    for threshold in (0.7, 0.75, 0.99):
        rule = replace(RULE, threshold=threshold)
        chances = 1 / (1 + np.exp(-(2 * np.array([1.0, 2.0]) - 1)))
        is_sure = rule.log_odds(1, logits, {}) >= rule.cut
        np.testing.assert_array_equal(is_sure, chances >= threshold)


@pytest.fixture
def folder(tiny: pretrained.Pretrained, tmp_path: Path) -> Path:
    model = with_exits(model_of(tiny), (1,), threshold=0.6)
    save_model(model, tmp_path / "model", card="a card")
    return tmp_path / "model"


def test_a_folder_keeps_exits(tiny: pretrained.Pretrained, folder: Path) -> None:
    model, loaded = with_exits(model_of(tiny), (1,), threshold=0.6), load_model(folder)
    assert model.exits is not None
    assert loaded.exits is not None
    assert loaded.exits.rule == model.exits.rule == open_model(folder).exits
    pieces = loaded.tokenizer.encode(TEXTS)
    found, expected = compute_outputs(loaded, pieces), compute_outputs(model, pieces)
    assert found.layers is not None
    assert set(found.layers.tolist()) == {1, 2}
    np.testing.assert_array_equal(found.layers, expected.layers)
    np.testing.assert_allclose(found.logits["sentiment"], expected.logits["sentiment"], atol=1e-6)
    tasks = {"sentiment": ["negative", "positive"]}
    content = json.loads(json.dumps(RULE.as_json()))
    assert exits_from_json(content, tasks=tasks, n_layers=4) == RULE
    for wrong in ({"n_layers": 3}, {"tasks": {"sentiment": []}}, {"tasks": {"mood": ["a", "b"]}}):
        with pytest.raises(ValueError, match="exit"):
            exits_from_json(content, **{"tasks": tasks, "n_layers": 4, **wrong})  # type: ignore[arg-type]
    words = Promise(0.01, 0.95, 1000, 4).in_words()
    assert "at most 1 %" in words
    assert "4 of the 1000 texts" in words


def test_files_of_another_model_are_refused(
    tiny: pretrained.Pretrained, tmp_path: Path, folder: Path
) -> None:
    export_unmeasured(folder)
    exported = {name: (folder / name).read_bytes() for name in ("model.onnx", "export.json")}
    save_model(with_exits(model_of(tiny), (1,), threshold=0.7), folder, card="")
    for name, content in exported.items():
        (folder / name).write_bytes(content)
    hash_folder(folder).write(folder)
    with pytest.raises(UserError, match="disagree about exits"):
        Predictor.load(folder, runtime="onnx")
    save_model(model_of(tiny), tmp_path / "whole", card="")  # without the weights of an exit
    (folder / "model.safetensors").write_bytes((tmp_path / "whole/model.safetensors").read_bytes())
    hash_folder(folder).write(folder)
    with pytest.raises(UserError, match=r"litotes\.json: damaged"):
        load_model(folder)


def test_an_explanation_is_of_the_whole_model(tiny: pretrained.Pretrained) -> None:
    whole = model_of(tiny)
    early = with_exits(whole, (1,), threshold=1e-9)
    text, options = TEXTS[0], {"methods": ["occlusion"], "faithfulness": False}
    explained = Predictor(early, device="cpu").explain(text, **options)  # type: ignore[arg-type]
    (answer,) = Predictor(whole, device="cpu").predict([text])
    assert explained.answered_at_layer == 1
    assert explained.as_json(maps=False)["answered_at_layer"] == 1
    assert "after layer 1 of 2" in explained.exit_in_words()
    found = explained.answers["sentiment"].probability
    assert found == pytest.approx(answer.answers["sentiment"].probability, abs=1e-6)
    (left,) = Predictor(early, device="cpu").predict([text])
    assert found != pytest.approx(left.answers["sentiment"].probability, abs=1e-6)


# Each text as if it were alone

MOODS = (Task("mood", ("low", "even", "high")), Task("sarcasm", ("literal", "sarcastic")))
CALIBRATION = {"sarcasm": Calibration(2.0, 0.4, 100)}
SIZES = {
    "n_vocabulary": 60,
    "width": 32,
    "n_layers": 4,
    "n_attention_heads": 4,
    "inner_width": 40,
    "n_positions": 64,
    "dropout": 0.0,
    "attention_dropout": 0.0,
}
SHARES = [0.9, 0.7, 0.5, 0.3]
SETTINGS: dict[str, dict[str, Any]] = {
    "heads": {"pruning": "cascade", "pruning_options": {"schedule": SHARES, "final_heads": 0.3}},
    "fused": {"pruning": "cascade", "pruning_options": {"schedule": SHARES, "fuse": True}},
    "both": {
        "pruning": "learned",
        "pruning_options": {"shares": SHARES, "fuse": True, "restore": True},
    },
    **{name: {"pruning": name} for name in PRUNINGS},
}
LENGTHS = (1, 2, 9, 40, 17, 3, 9, 24)
INNER = (1, 3)
THRESHOLD = 0.55


def classifier_of(head: str = "mean", **choices: Any) -> Classifier:
    torch.manual_seed(0)
    encoder = Encoder(EncoderSpec("bert", **SIZES, **choices))
    for parameter in encoder.parameters():
        if parameter.ndim > 1:
            torch.nn.init.normal_(parameter, std=0.3)
    return Classifier(encoder, MOODS, head=head, dropout=0.0).double().eval()


def texts_of(lengths: tuple[int, ...] = LENGTHS) -> list[Pieces]:
    generator = torch.Generator().manual_seed(0)
    drawn = [torch.randint(0, 60, (length,), generator=generator).tolist() for length in lengths]
    return [Pieces(text, [0] * len(text), False) for text in drawn]


@pytest.fixture(params=sorted(SETTINGS))
def setting(request: pytest.FixtureRequest) -> dict[str, Any]:
    return SETTINGS[request.param]


@pytest.mark.parametrize("head", ["linear", "mean"])
def test_a_text_is_answered_as_if_it_were_alone(setting: dict[str, Any], head: str) -> None:
    classifier, texts = classifier_of(head, **setting), texts_of()
    exits = exits_of(classifier, INNER, threshold=THRESHOLD)
    logits, layers = exits.answer(classifier, pack(texts), CALIBRATION)
    assert len(set(layers.tolist())) > 1  # some leave and some stay, or nothing is shown here
    for place, text in enumerate(texts):
        alone, layer = exits.answer(classifier, pack([text]), CALIBRATION)
        assert layer.tolist() == [layers[place].item()]
        for task, own in alone.items():
            torch.testing.assert_close(own[0], logits[task][place], rtol=0, atol=1e-9)
    went_on, whole = layers == 4, classifier(pack(texts))
    for task, own in whole.items():  # those that stay are answered by the whole model
        torch.testing.assert_close(logits[task][went_on], own[went_on], rtol=0, atol=1e-9)
        assert not torch.allclose(logits[task][~went_on], own[~went_on])
    never = exits_of(classifier, INNER, threshold=1.0)
    assert set(never.answer(classifier, pack(texts), CALIBRATION)[1].tolist()) == {4}


def test_a_text_leaves_when_every_task_is_sure() -> None:
    classifier, batch = classifier_of(), pack(texts_of())
    exits = exits_of(classifier, INNER, threshold=THRESHOLD)
    hidden = classifier.encoder.walk(classifier.encoder.embeddings(batch), batch.layout, stop=1)
    logits = {task: own.detach().numpy() for task, own in exits.heads(1, hidden).items()}
    mood = np.sort(logits["mood"], axis=1)
    margins = {"mood": mood[:, -1] - mood[:, -2]}
    # P(sarcastic) ≥ 0.4 at a temperature of 2
    lead = logits["sarcasm"][:, 1] - logits["sarcasm"][:, 0]
    margins["sarcasm"] = np.abs(lead - 2 * np.log(0.4 / 0.6))
    sure = [1 / (1 + np.exp(1 - own)) >= THRESHOLD for own in margins.values()]
    assert (sure[0] != sure[1]).any()
    _, layers = exits.answer(classifier, batch, CALIBRATION)
    np.testing.assert_array_equal(layers.numpy() == 1, sure[0] & sure[1])
    at_once = exits_of(classifier, INNER, threshold=1e-9)
    found, layers = at_once.answer(classifier, batch, CALIBRATION)
    assert set(layers.tolist()) == {1}
    for task, own in at_once.heads(1, hidden).items():
        torch.testing.assert_close(found[task], own)


def test_texts_that_leave_are_gone_from_the_tensor(setting: dict[str, Any]) -> None:
    """What an exit sees of the others has only the pieces of texts still there."""
    classifier, batch = classifier_of(**setting), pack(texts_of())
    seen: dict[int, Encoding] = {}

    def leave(layer: int, encoding: Encoding, go_on: GoOn) -> Encoding:
        seen[layer] = encoding
        whole: Encoding = go_on(torch.arange(len(LENGTHS)) % 2 == 0 if layer == 2 else None)
        return whole

    encoded = classifier.encoder(batch, exits={n: partial(leave, n) for n in (2, 3)})
    kept: Batch = pack(texts_of()[::2])
    expected: dict[int, Encoding] = {}

    def watch(encoding: Encoding, go_on: GoOn) -> Encoding:
        expected[3] = encoding
        whole: Encoding = go_on(None)
        return whole

    others = classifier.encoder(kept, exits={3: watch})
    assert seen[2].layout.n_texts == len(LENGTHS)
    for found, own in ((seen[3], expected[3]), (encoded, others)):
        assert found.layout.lengths == own.layout.lengths
        assert torch.equal(found.origin, own.origin)
        torch.testing.assert_close(found.hidden, own.hidden, rtol=0, atol=1e-9)


# The exit before the first layer


def pieces_of(*lengths: int) -> list[Pieces]:
    drawn = np.random.default_rng(1)
    texts = [drawn.integers(0, N_PIECES, length).tolist() for length in lengths]
    return [Pieces(text, [0] * len(text), False) for text in texts]


def test_logits_are_a_sum_over_pieces_the_very_same_for_a_text_alone() -> None:
    table, texts = table_of(), pieces_of(5, 1, 30, 120, 64)
    found = table.logits(texts)
    rows = table.rows.astype(np.float64)
    for place, text in enumerate(texts):
        expected = rows[0] + rows[[1 + piece for piece in text.ids]].sum(0) / len(text.ids) ** 0.5
        together = np.concatenate([found["mood"][place], found["sarcasm"][place]])
        np.testing.assert_allclose(together, expected, atol=1e-4)
        for task, own in table.logits([text]).items():
            np.testing.assert_array_equal(own[0], found[task][place])
    assert table.logits([])["mood"].shape == (0, 3)


def test_only_what_the_table_is_unsure_of_is_computed() -> None:
    texts, asked = pieces_of(9, 3, 12, 1, 6), []
    sureness = {0: dict.fromkeys(N_OUTPUTS, Sureness(-1.0, 1.0))}
    tier = StaticTier(table_of(), Exits((0,), sureness, 0.35, PROMISE), {}, n_layers=4)

    def others(rest: Sequence[Pieces]) -> Outputs:
        asked.extend(rest)
        logits = {task: np.full((len(rest), n), 7.0) for task, n in N_OUTPUTS.items()}
        return Outputs(logits, np.full(len(rest), 2))

    found = tier.answer(texts, others)
    assert found.layers is not None
    assert set(found.layers.tolist()) == {0, 2}
    assert asked == [text for text, at in zip(texts, found.layers, strict=True) if at]
    for task, own in tier.table.logits(texts).items():
        is_early = found.layers == 0
        np.testing.assert_array_equal(found.logits[task][is_early], own[is_early])
        assert (found.logits[task][~is_early] == 7).all()


def npy(array: np.ndarray) -> bytes:
    stream = io.BytesIO()
    np.save(stream, array)
    return stream.getvalue()


CONTENT = table_of().to_bytes()
BAD = {
    "nothing": b"",
    "no table": b"PK\x03\x04" + CONTENT[4:],
    "cut off": CONTENT[:-2],
    "longer": CONTENT + b"00",
    "other numbers": npy(np.zeros((1 + N_PIECES, 5), np.float32)),
    "another vocabulary": npy(np.zeros((2 + N_PIECES, 5), STORED)),
    "by column": npy(np.asfortranarray(np.zeros((1 + N_PIECES, 5), STORED))),
    "infinite": npy(np.full((1 + N_PIECES, 5), np.inf, STORED)),
    "endless": CONTENT.replace(b"(41, 5)", b"(9**9,)"),
}


@pytest.mark.parametrize("change", BAD)
def test_what_is_no_table_is_refused(change: str) -> None:
    parse_table(CONTENT, n_pieces=N_PIECES, n_outputs=N_OUTPUTS)
    with pytest.raises(ValueError):  # noqa: PT011  (numpy's own words)
        parse_table(BAD[change], n_pieces=N_PIECES, n_outputs=N_OUTPUTS)


@pytest.fixture
def early(tiny: pretrained.Pretrained, tmp_path: Path) -> Path:
    save_model(with_table(model_of(tiny), (1,), threshold=0.6), tmp_path / "model", card="")
    return tmp_path / "model"


@pytest.mark.parametrize("precision", ["float32", "int8"])
def test_torch_and_the_file_agree_on_layer_and_label(
    early: Path, precision: str, capsys: pytest.CaptureFixture[str]
) -> None:
    model, folder = load_model(early), open_model(early)
    texts = model.tokenizer.encode(TEXTS * 10)
    hashes = folder.stated_hashes
    content = build_onnx(model, precision=precision, texts=texts, made_from=hashes)
    write_export(folder, content, precision, {})
    ours, theirs = (Predictor.load(early, runtime=name) for name in ("torch", "onnx"))
    asked = [list(predictor.stream(TEXTS)) for predictor in (ours, theirs)]
    found = [
        [(one.answered_at_layer, one.answers["sentiment"].label) for one in own] for own in asked
    ]
    assert len({layer for layer, _ in found[0]}) > 1
    at_once = [[one if one[0] == 0 else None for one in own] for own in found]
    assert at_once[0] == at_once[1]
    assert precision != "float32" or found[0] == found[1]
    for (layer, _), one in zip(found[0], asked[0], strict=True):
        assert as_json(one, ours.tasks)["answered_at_layer"] == layer
        assert f"answered_at_layer={layer}" in repr(one)
    text = TEXTS[[layer for layer, _ in found[0]].index(0)]
    assert main(["predict", text, "--model", str(early)]) == 0
    assert "(answered by the table)" in capsys.readouterr().out
    explained = ours.explain(text, methods=["occlusion"], faithfulness=False)
    assert explained.answered_at_layer == 0
    assert "by a table of pieces, before the first layer" in explained.exit_in_words()


def test_the_table_is_part_of_the_model(early: Path, tmp_path: Path) -> None:
    export_unmeasured(early)
    before = {name: Predictor.load(early, runtime=name).identities for name in ("torch", "onnx")}
    content = bytearray((early / TABLE).read_bytes())
    content[-1] ^= 1
    (early / TABLE).write_bytes(content)
    for runtime in ("torch", "onnx"):
        with pytest.raises(UserError, match=r"table\.npy is missing or not the file"):
            Predictor.load(early, runtime=runtime)
    hash_folder(early).write(early)
    for runtime, known in before.items():
        assert Predictor.load(early, runtime=runtime).identities != known
    alone = early.parent / "alone"  # of a table no exit inside is needed
    save_model(with_table(load_model(early), (), threshold=0.6), alone, card="")
    export_unmeasured(alone)
    layers = [
        [one.answered_at_layer for one in Predictor.load(alone, runtime=name).predict(TEXTS)]
        for name in ("torch", "onnx")
    ]
    assert layers[0] == layers[1]
    assert set(layers[0]) == {0, 2}
    (early / TABLE).unlink()
    with pytest.raises(UserError, match=r"table\.npy is missing"):
        load_model(early)
