"""The exit before the first layer: a table that is the same by torch and beside an ONNX file."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from made_exits import N_OUTPUTS, N_PIECES, PROMISE, table_of, with_table
from tiny_exports import export_unmeasured
from tiny_models import TEXTS, model_of

from litotes.cli.main import main
from litotes.core.errors import UserError
from litotes.encoder import pretrained
from litotes.encoder.tokenizer import Pieces
from litotes.exporting.export import working_copy
from litotes.exporting.model_graph import build_onnx, write_export
from litotes.model.checkpoint import load_model, save_model
from litotes.model.exits import STORED, TABLE, Exits, Outputs, StaticTier, Sureness, parse_table
from litotes.model.folder import hash_folder, open_model
from litotes.model.runtime import compute_logits, compute_outputs
from litotes.prediction.predictor import Predictor


def texts_of(*lengths: int) -> list[Pieces]:
    drawn = np.random.default_rng(1)
    texts = [drawn.integers(0, N_PIECES, length).tolist() for length in lengths]
    return [Pieces(text, [0] * len(text), False) for text in texts]


def test_logits_are_a_sum_over_pieces() -> None:
    table, texts = table_of(), texts_of(5, 1, 30)
    found = table.logits(texts)
    rows = table.rows.astype(np.float64)
    for place, text in enumerate(texts):
        expected = rows[0] + rows[[1 + piece for piece in text.ids]].sum(0) / len(text.ids) ** 0.5
        together = np.concatenate([found["mood"][place], found["sarcasm"][place]])
        np.testing.assert_allclose(together, expected, atol=1e-4)


def test_a_text_alone_has_the_very_same_numbers() -> None:
    table, texts = table_of(), texts_of(9, 3, 120, 1, 64)
    together = table.logits(texts)
    for place, text in enumerate(texts):
        for task, own in table.logits([text]).items():
            np.testing.assert_array_equal(own[0], together[task][place])
    assert table.logits([])["mood"].shape == (0, 3)


def test_only_what_the_table_is_unsure_of_is_computed() -> None:
    texts, asked = texts_of(9, 3, 12, 1, 6), []
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
def folder(tiny: pretrained.Pretrained, tmp_path: Path) -> Path:
    save_model(with_table(model_of(tiny), (1,), threshold=0.6), tmp_path / "model", card="")
    return tmp_path / "model"


def export(path: Path, precision: str) -> None:
    folder, model = open_model(path), load_model(path)
    texts = model.tokenizer.encode(TEXTS * 10)
    hashes = folder.stated_hashes
    content = build_onnx(model, precision=precision, texts=texts, made_from=hashes)
    write_export(folder, content, precision, {})


@pytest.mark.parametrize("precision", ["float32", "int8"])
def test_torch_and_the_file_agree_on_layer_and_label(folder: Path, precision: str) -> None:
    export(folder, precision)
    layers, labels = {}, {}
    for runtime in ("torch", "onnx"):
        predictions = list(Predictor.load(folder, runtime=runtime).stream(TEXTS))
        layers[runtime] = [one.answered_at_layer for one in predictions]
        labels[runtime] = [one.answers["sentiment"].label for one in predictions]
    assert 0 in layers["torch"]
    assert len(set(layers["torch"])) > 1
    at_once = [place for place, layer in enumerate(layers["torch"]) if layer == 0]
    assert at_once == [place for place, layer in enumerate(layers["onnx"]) if layer == 0]
    assert [labels["torch"][place] for place in at_once] == [
        labels["onnx"][place] for place in at_once
    ]
    if precision == "float32":
        assert (layers["torch"], labels["torch"]) == (layers["onnx"], labels["onnx"])


def test_a_table_alone_needs_no_exit_inside(tiny: pretrained.Pretrained, tmp_path: Path) -> None:
    model, folder = with_table(model_of(tiny), (), threshold=0.6), tmp_path / "model"
    save_model(model, folder, card="")
    export_unmeasured(folder)
    pieces = model.tokenizer.encode(TEXTS)
    found, whole = compute_outputs(model, pieces), compute_logits(model, pieces)
    assert found.layers is not None
    assert set(found.layers.tolist()) == {0, 2}
    stayed = found.layers == 2
    np.testing.assert_allclose(
        found.logits["sentiment"][stayed], whole["sentiment"].numpy()[stayed], atol=1e-6
    )
    exported = Predictor.load(folder, runtime="onnx").predict(TEXTS)
    assert [one.answered_at_layer for one in exported] == found.layers.tolist()


def test_the_table_is_part_of_the_model(folder: Path, tmp_path: Path) -> None:
    export_unmeasured(folder)
    before = {name: Predictor.load(folder, runtime=name).identities for name in ("torch", "onnx")}
    content = bytearray((folder / TABLE).read_bytes())
    content[-1] ^= 1
    (folder / TABLE).write_bytes(content)
    for runtime in ("torch", "onnx"):
        with pytest.raises(UserError, match=r"table\.npy is missing or not the file"):
            Predictor.load(folder, runtime=runtime)
    hash_folder(folder).write(folder)
    for runtime, known in before.items():
        assert Predictor.load(folder, runtime=runtime).identities != known
    (folder / TABLE).unlink()
    with pytest.raises(UserError, match=r"table\.npy is missing"):
        load_model(folder)


def test_a_copy_of_the_folder_has_the_table(folder: Path, tmp_path: Path) -> None:
    with working_copy(folder, str(tmp_path / "copy")) as copied:
        assert copied.read_table() is not None
        assert load_model(copied).exits is not None


def test_the_shell_and_explanations_say_so(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    predictor = Predictor.load(folder, runtime="torch")
    layers = [one.answered_at_layer for one in predictor.predict(TEXTS)]
    text = TEXTS[layers.index(0)]
    assert main(["predict", text, "--model", str(folder)]) == 0
    assert "(answered by the table)" in capsys.readouterr().out
    assert main(["predict", text, "--model", str(folder), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["answered_at_layer"] == 0
    explained = predictor.explain(text, methods=["occlusion"], faithfulness=False)
    assert explained.answered_at_layer == 0
    assert "by a table of pieces, before the first layer" in explained.exit_in_words()
