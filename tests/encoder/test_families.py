"""Every family equals `transformers`: on random weights, hidden states to 1e-5, both ways of saving
and loading.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoConfig, AutoModel

from litotes.core.errors import UserError
from litotes.encoder.encoder import Encoder
from litotes.encoder.families import (
    FAMILIES,
    config_from_spec,
    spec_from_config,
    spec_from_json,
    weight_names,
)
from litotes.encoder.layout import Batch, Layout
from litotes.encoder.operations import Rows
from litotes.encoder.packing import pack
from litotes.encoder.pretrained import load_family_tensors, to_family_tensors
from litotes.encoder.reshaping import rebuild_encoder
from litotes.encoder.tokenizer import Pieces

# transformers' DeBERTa scripts some functions when it is imported
pytestmark = pytest.mark.filterwarnings("ignore:`torch.jit.script:DeprecationWarning")

COMMON = {"vocab_size": 99, "max_position_embeddings": 300}
SPECIAL = {
    "pad_token_id": 0,
    "bos_token_id": 1,
    "cls_token_id": 1,
    "eos_token_id": 2,
    "sep_token_id": 2,
}
SIZES = {
    "hidden_size": 48,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "intermediate_size": 64,
}
DISENTANGLED = {
    "relative_attention": True,
    "pos_att_type": "p2c|c2p",
    "layer_norm_eps": 1e-7,
    "type_vocab_size": 0,
}
CONFIGS: dict[str, dict[str, Any]] = {
    "bert": SIZES,
    "roberta": SIZES | {"type_vocab_size": 1},
    "xlm-roberta": SIZES | {"type_vocab_size": 1},
    "distilbert": {"dim": 48, "n_layers": 3, "n_heads": 4, "hidden_dim": 64},
    "electra": SIZES | {"embedding_size": 24},
    "albert": (
        SIZES
        | {
            "embedding_size": 24,
            "num_hidden_layers": 4,
            "num_hidden_groups": 2,
            "inner_group_num": 2,
        }
    ),
    "mpnet": SIZES,
    "deberta-v2": SIZES | DISENTANGLED | {"position_buckets": 32},
    "deberta-v2 v3": (
        SIZES
        | DISENTANGLED
        | {
            "position_buckets": 16,
            "share_att_key": True,
            "norm_rel_ebd": "layer_norm",
            "position_biased_input": False,
        }
    ),
    "deberta-v2 c2p": (
        SIZES
        | DISENTANGLED
        | {"pos_att_type": ["c2p"], "max_relative_positions": 30, "type_vocab_size": 2}
    ),
    "deberta-v2 p2c": SIZES | DISENTANGLED | {"pos_att_type": "p2c", "share_att_key": True},
    "modernbert": SIZES | {"local_attention": 20, "num_hidden_layers": 5},
    "modernbert biases": (
        SIZES
        | {
            "attention_bias": True,
            "mlp_bias": True,
            "norm_bias": True,
            "hidden_activation": "silu",
            "local_attention": 7,
            "global_attn_every_n_layers": 2,
            "global_rope_theta": 500.0,
            "local_rope_theta": 30.0,
        }
    ),
    "modernbert global": SIZES | {"global_attn_every_n_layers": 1},
}
"""By family, and a word where a family has several configurations."""
LENGTHS = (1, 7, 150, 40, 3)  # past MPNet's farthest bucket of 128


def test_every_family_is_tested() -> None:
    assert {name.split()[0] for name in CONFIGS} == set(FAMILIES)


def config_of(name: str) -> Any:
    family = name.split()[0]
    special = SPECIAL if family == "modernbert" else {}  # its defaults lie beyond 99 pieces
    return AutoConfig.for_model(family, **COMMON | special | CONFIGS[name])


@pytest.fixture(params=sorted(CONFIGS))
def reference(request: pytest.FixtureRequest) -> Any:
    """A random model of `transformers`, with weights large enough to tell mistakes from noise."""
    torch.manual_seed(3)
    model = AutoModel.from_config(config_of(request.param)).eval()
    for name, parameter in model.named_parameters():
        torch.nn.init.normal_(
            parameter,
            mean=1.0 if "norm" in name.lower() and name.endswith("weight") else 0.0,
            std=0.2,
        )
    return model


def ours(reference: Any) -> Encoder:
    encoder = Encoder(spec_from_config(reference.config.to_dict(), "config.json"))
    load_family_tensors(encoder, reference.state_dict(), "test")
    return encoder.eval()


def batch(lengths: tuple[int, ...] = LENGTHS, *, segments: bool = False) -> Batch:
    generator = torch.Generator().manual_seed(5)
    texts = [torch.randint(5, 99, (length,), generator=generator).tolist() for length in lengths]
    return pack(
        [
            Pieces(text, [int(segments and place > 2) for place in range(len(text))], False)
            for text in texts
        ]
    )


def theirs(reference: Any, packed: Batch, **more: Any) -> torch.Tensor:
    """Text by text, so that no padding is involved on their side either."""
    lengths = packed.layout.lengths
    by_text = {name: values.split(lengths) for name, values in more.items()}
    rows = []
    for text, ids in enumerate(packed.pieces.split(lengths)):
        options = {name: parts[text][None] for name, parts in by_text.items()}
        rows.append(reference(input_ids=ids[None], **options).last_hidden_state[0])
    return torch.cat(rows)


@torch.no_grad()
def test_it_computes_what_transformers_computes(
    reference: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Packed, as padded rows (the way of accelerators), of first pieces alone, and of pairs."""
    encoder, packed = ours(reference), batch()
    expected = theirs(reference, packed)
    for _ in range(2):
        firsts = encoder(packed, firsts_only=True)
        assert firsts.layout == Layout.of([1] * len(LENGTHS))
        assert (firsts.hidden - expected[packed.layout.starts]).abs().max() < 1e-5
        assert (encoder(packed).hidden - expected).abs().max() < 1e-5
        monkeypatch.setattr(Rows, "of", classmethod(lambda cls, layout: cls(layout, apart=False)))
    if encoder.spec.n_segments > 1:  # else it does not tell the texts of a pair apart
        pairs = batch(segments=True)
        expected = theirs(reference, pairs, token_type_ids=pairs.segments)
        assert (encoder(pairs).hidden - expected).abs().max() < 1e-5


@torch.no_grad()
@pytest.mark.parametrize("pruning", ["none", "cascade"])
def test_all_is_computed_where_the_encoder_is(reference: Any, pruning: str) -> None:
    """A tensor left on the CPU cannot be combined with one of another device."""
    encoder, packed = rebuild_encoder(ours(reference), pruning=pruning).to("meta"), batch()
    pieces, segments = packed.pieces.to("meta"), packed.segments.to("meta")
    elsewhere = Batch(pieces, segments, Layout.of(LENGTHS, "meta"))
    for firsts_only in (False, True):
        hidden = encoder(elsewhere, firsts_only=firsts_only).hidden
        assert (hidden.device.type, hidden.shape[1]) == ("meta", 48)


@torch.no_grad()
def test_saved_weights_load_in_transformers_again(reference: Any, tmp_path: Path) -> None:
    from safetensors.torch import save_file

    encoder = ours(reference)
    save_file(to_family_tensors(encoder), tmp_path / "model.safetensors", metadata={"format": "pt"})
    (tmp_path / "config.json").write_text(json.dumps(config_from_spec(encoder.spec)))
    again, info = AutoModel.from_pretrained(tmp_path, output_loading_info=True)
    assert {name for name in info["missing_keys"] if "pooler" not in name} == set()
    assert not info["unexpected_keys"]
    assert (theirs(again.eval(), batch()) - theirs(reference, batch())).abs().max() < 1e-6


def test_every_weight_has_a_name_of_the_family_and_a_gradient_in_half_precision(
    reference: Any,
) -> None:
    encoder, packed = ours(reference), batch((1, 7, 40), segments=True)
    assert {name for name, _ in weight_names(encoder.spec)} == set(encoder.state_dict())
    expected = encoder(packed).hidden
    with torch.autocast("cpu", torch.bfloat16):
        found = encoder(packed).hidden
    assert (found - expected).abs().mean() < 0.05 * expected.abs().mean()
    found.float().square().sum().backward()
    assert all(parameter.grad is not None for parameter in encoder.parameters())


def test_old_checkpoints_load_and_what_is_missing_or_misshapen_is_named() -> None:
    torch.manual_seed(0)
    bert = AutoModel.from_config(config_of("bert")).eval()
    expected, tensors = ours(bert), bert.state_dict()
    old = {
        f"bert.{name}".replace("LayerNorm.weight", "LayerNorm.gamma"): tensor
        for name, tensor in tensors.items()
    }
    encoder = Encoder(expected.spec).eval()
    load_family_tensors(encoder, old | {"classifier.weight": torch.zeros(2, 48)}, "test")
    assert torch.equal(encoder(batch()).hidden, expected(batch()).hidden)
    name = "encoder.layer.1.output.LayerNorm.bias"
    with pytest.raises(UserError, match=name):
        load_family_tensors(encoder, {k: v for k, v in tensors.items() if k != name}, "test")
    with pytest.raises(UserError, match="shape"):
        load_family_tensors(encoder, tensors | {name: torch.zeros(3)}, "test")


REFUSED = [
    ("bert", {"auto_map": {"AutoModel": "x.Model"}}, "auto_map"),
    ("bert", {"_attn_implementation_internal": "someone/kernel"}, "_attn_implementation"),
    ("bert", {"is_decoder": True}, "decoder"),
    ("bert", {"position_embedding_type": "relative_key"}, "relative_key"),
    ("bert", {"model_type": "robbert"}, "roberta"),
    ("bert", {"hidden_size": None}, "hidden_size"),
    ("bert", {"num_attention_heads": 7}, "7 attention heads"),
    ("bert", {"quantization_config": {"bits": 4}}, "quantis"),
    ("bert", {"num_hidden_layers": 10**12}, "num_hidden_layers"),
    ("bert", {"num_hidden_layers": -1}, "num_hidden_layers"),
    ("bert", {"vocab_size": "many"}, "vocab_size"),
    ("bert", {"num_attention_heads": 0}, "num_attention_heads"),
    ("bert", {"num_attention_heads": True}, "num_attention_heads"),
    ("bert", {"layer_norm_eps": -7}, "layer_norm_eps"),
    ("bert", {"hidden_dropout_prob": 1.0}, "hidden_dropout_prob"),
    ("bert", {"hidden_act": 3}, "hidden_act"),
    ("roberta", {"max_position_embeddings": 3, "pad_token_id": 2}, "no room for a text"),
    ("deberta-v2", {"relative_attention": False}, "relative_attention = False"),
    ("deberta-v2", {"conv_kernel_size": 3}, "conv_kernel_size = 3"),
    ("deberta-v2", {"embedding_size": 24}, "embedding_size = 24"),
    ("deberta-v2", {"attention_head_size": 7}, "attention_head_size = 7"),
    ("deberta-v2", {"pos_att_type": "c2p|p2p"}, "only c2p and p2c"),
    ("deberta-v2", {"pos_att_type": None}, "only c2p and p2c"),
    ("deberta-v2", {"norm_rel_ebd": "batch_norm"}, "batch_norm"),
    ("deberta-v2", {"position_buckets": 64, "max_relative_positions": 33}, "64 buckets"),
    ("deberta-v2", {"position_buckets": "many"}, "position_buckets"),
    ("deberta-v2", {"share_att_key": 3}, "share_att_key"),
    ("modernbert", {"rope_scaling": {"rope_type": "yarn"}}, "scaled"),
    ("modernbert", {"rope_parameters": {"full_attention": {"rope_type": "yarn"}}}, "scaled"),
    ("modernbert", {"layer_types": ["sliding_attention"] * 3}, "layer_types"),
    ("modernbert", {"layer_types": 7}, "layer_types"),
    ("modernbert", {"rope_parameters": [7]}, "rope_parameters"),
    ("modernbert", {"global_rope_theta": -5.0}, "global_rope_theta"),
    ("modernbert", {"num_attention_heads": 16}, "3 wide"),
    ("modernbert", {"local_attention": "wide"}, "local_attention"),
    ("modernbert", {"norm_bias": "no"}, "norm_bias"),
]


@pytest.mark.parametrize(("family", "change", "words"), REFUSED)
def test_configs_that_cannot_be_honoured_are_refused(
    family: str, change: dict[str, Any], words: str
) -> None:
    special = {} if family == "bert" else SPECIAL | DISENTANGLED
    config = {"model_type": family} | COMMON | special | SIZES | change
    if None in change.values() and family == "bert":
        config = {key: value for key, value in config.items() if value is not None}
    with pytest.raises(UserError, match=words):
        spec_from_config(config, "config.json")


def test_older_spellings_of_modernbert_are_the_same() -> None:
    """Before transformers 5 four numbers stood for the list of layers and the rotations."""
    older = {
        "model_type": "modernbert",
        "global_attn_every_n_layers": 3,
        "global_rope_theta": 160000.0,
        "local_rope_theta": None,
        "local_attention": 20,
    }
    spec = spec_from_config(older | COMMON | SPECIAL | SIZES, "config.json")
    assert spec.local_rotary_base == spec.rotary_base == 160000.0
    newer = config_of("modernbert").to_dict()
    assert spec_from_config(newer, "config.json") == replace(
        spec, n_layers=5, local_rotary_base=10000.0
    )


@pytest.mark.parametrize(
    "change",
    [
        {"position_terms": ["c2p", "c2p"], "farthest": 9},
        {"position_terms": [["c2p"]], "farthest": 9},
        {"position_terms": ["c2p"]},
        {"position_terms": ["c2p"], "farthest": 5, "n_distance_buckets": 8},
        {"distance_norm": "none of them"},
        {"rotary_base": float("inf")},
        {"rotary_base": 100.0, "n_attention_heads": 16},
        {"window": -3},
        {"global_every": 0},
        {"width": 50},
        {"family": "birt"},
        {"colour": "red"},
        {"heads_kept": [[0]]},
        {"heads_kept": [[0], [0, 0], [1]]},
        {"heads_kept": [[0], [4], [1]]},
        {"heads_kept": [[0], [], [1]]},
    ],
)
def test_descriptions_no_encoder_has_are_refused(change: dict[str, Any]) -> None:
    whole = spec_from_config({"model_type": "bert"} | COMMON | SIZES, "config.json").as_json()
    assert spec_from_json(whole).family == "bert"
    with pytest.raises(ValueError, match=r"encoder|buckets|turned|heads|room"):
        spec_from_json(whole | change)
