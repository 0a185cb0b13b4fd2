"""An int8 pack made here, read back as a RoBERTa folder."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from litotes.encoder import pretrained
from litotes.encoder.fetching import read_pack
from litotes.encoder.packing import pack

WIDTH, INNER, GROUP = 8, 16, 4


def make_pack(tokenizer: bytes, n_vocabulary: int) -> tuple[bytes, dict[str, np.ndarray]]:
    """The pack of one random layer, and the weights it holds."""
    draw = np.random.default_rng(0)
    shapes = {
        "word_emb": (n_vocabulary, WIDTH),
        "pos_emb": (20, WIDTH),
        "type_emb": (2, WIDTH),
        "emb_ln.w": (WIDTH,),
        "emb_ln.b": (WIDTH,),
        "l0.qkv.w": (3 * WIDTH, WIDTH),
        "l0.qkv.b": (3 * WIDTH,),
    }
    for part, (outputs, inputs) in {
        "ao": (WIDTH, WIDTH),
        "aln": (WIDTH, 0),
        "f1": (INNER, WIDTH),
        "f2": (WIDTH, INNER),
        "fln": (WIDTH, 0),
    }.items():
        shapes[f"l0.{part}.w"] = (outputs, inputs) if inputs else (outputs,)
        shapes[f"l0.{part}.b"] = (outputs,)
    described, contents, weights = [], [], {}
    for name, shape in shapes.items():
        is_int8 = len(shape) == 2 and name not in ("pos_emb", "type_emb")
        if is_int8:
            steps = draw.integers(-127, 128, (int(np.prod(shape)) // GROUP, GROUP), np.int8)
            scales = draw.random(len(steps), np.float32)
            content = steps.tobytes() + scales.tobytes()
            weights[name] = (steps * scales[:, None]).reshape(shape)
        else:
            weights[name] = draw.standard_normal(shape, np.float32)
            content = weights[name].tobytes()
        kind = {"dtype": "i8", "group": GROUP} if is_int8 else {"dtype": "f32", "group": 0}
        described.append({"name": name, "shape": shape, "len": len(content)} | kind)
        contents.append(content)
    arch = {
        "hidden": WIDTH,
        "layers": 1,
        "heads": 2,
        "intermediate": INNER,
        "vocab": n_vocabulary,
        "max_positions": 20,
        "type_vocab": 2,
        "layer_norm_eps": 1e-12,
        "position_offset": 2,
    }
    header = {"arch": arch, "tokenizer_len": len(tokenizer), "tensors": described}
    head = json.dumps(header).encode()
    size = len(head).to_bytes(8, "little")
    return b"".join([b"HMSEMB01", size, head, tokenizer, *contents]), weights


@pytest.fixture
def folder(tiny_folder: Path, tmp_path: Path) -> tuple[Path, dict[str, np.ndarray]]:
    tokenizer = (tiny_folder / "tokenizer.json").read_bytes()
    n_vocabulary = json.loads((tiny_folder / "config.json").read_text())["vocab_size"]
    content, weights = make_pack(tokenizer, n_vocabulary)
    for name, written in read_pack(content).items():
        (tmp_path / name).write_bytes(written)
    return tmp_path, weights


def test_a_pack_is_a_roberta_folder(folder: tuple[Path, dict[str, np.ndarray]]) -> None:
    path, weights = folder
    encoder = pretrained.load(str(path)).encoder
    assert (encoder.spec.family, encoder.spec.first_position) == ("roberta", 2)
    block = encoder.block(0)
    expected = {
        "word_emb": encoder.embeddings.piece.weight,
        "l0.qkv.w": block.attention.qkv.weight,
        "l0.qkv.b": block.attention.qkv.bias,
        "l0.f1.w": block.inner.weight,
        "l0.f2.w": block.outer.weight,
        "l0.aln.b": block.attention_norm.bias,
        "l0.fln.w": block.outer_norm.weight,
    }
    for name, parameter in expected.items():
        torch.testing.assert_close(parameter.detach(), torch.from_numpy(weights[name]))


def test_transformers_computes_the_same(folder: tuple[Path, dict[str, np.ndarray]]) -> None:
    from transformers import RobertaModel

    loaded = pretrained.load(str(folder[0]))
    theirs = RobertaModel.from_pretrained(folder[0], add_pooling_layer=False).eval()
    (pieces,) = loaded.tokenizer.encode(["great tea"])
    with torch.no_grad():
        expected = theirs(torch.tensor([pieces.ids])).last_hidden_state[0]
        found = loaded.encoder(pack([pieces])).hidden
    torch.testing.assert_close(found, expected, atol=1e-4, rtol=1e-4)
