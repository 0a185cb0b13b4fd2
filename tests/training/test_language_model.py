"""The logits of every family's language model are those of `transformers`, both ways."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from transformers import AutoConfig, AutoModelForMaskedLM, BertForPreTraining

from litotes.core.errors import UserError
from litotes.core.storage import write_json
from litotes.core.values import MISSING
from litotes.encoder.encoder import Encoder
from litotes.encoder.families import config_from_spec, spec_from_config
from litotes.encoder.pretrained import load_family_tensors
from litotes.training.pretraining.language_model import (
    OUTPUT_NAMES,
    LanguageModel,
    architecture_of,
    draw_weights,
    family_tensors,
    load_heads,
)
from litotes.training.pretraining.masking import MaskedBatch, MaskedText, pack_masked

SIZES = {
    "hidden_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 64,
}
COMMON = {"vocab_size": 99, "max_position_embeddings": 64}
CONFIGS: dict[str, dict[str, Any]] = {
    "bert": SIZES | {"hidden_act": "relu"},  # the output layer has it too
    "roberta": SIZES | {"type_vocab_size": 1},
    "xlm-roberta": SIZES | {"type_vocab_size": 1},
    "distilbert": {"dim": 48, "n_layers": 2, "n_heads": 4, "hidden_dim": 64},
    "electra": SIZES | {"embedding_size": 24},
    "albert": SIZES | {"embedding_size": 24},
    "mpnet": SIZES,
}


def test_every_family_with_an_output_layer_is_tested() -> None:
    assert set(CONFIGS) == set(OUTPUT_NAMES)


def random_weights(model: Any) -> Any:
    for name, parameter in model.named_parameters():
        is_scale = "norm" in name.lower() and name.endswith("weight")
        torch.nn.init.normal_(parameter, mean=1.0 if is_scale else 0.0, std=0.2)
    return model.eval()


@pytest.fixture(params=sorted(CONFIGS))
def reference(request: pytest.FixtureRequest) -> Any:
    torch.manual_seed(3)
    config = AutoConfig.for_model(request.param, **COMMON | CONFIGS[request.param])
    return random_weights(AutoModelForMaskedLM.from_config(config))


def ours(reference: Any, *, next_sentence: bool = False) -> LanguageModel:
    encoder = Encoder(spec_from_config(reference.config.to_dict(), "config.json"))
    load_family_tensors(encoder, reference.state_dict(), "test")
    model = LanguageModel(encoder, next_sentence=next_sentence)
    assert load_heads(model, reference.state_dict(), "test") == []
    return model.eval()


def masked_batch(*, pairs: bool = False) -> MaskedBatch:
    generator = torch.Generator().manual_seed(5)
    texts = []
    for length in (7, 40, 3):
        ids = torch.randint(5, 99, (length,), generator=generator)
        segments = (torch.arange(length) > length // 2).long() * pairs
        places = torch.arange(0, length, 3)
        texts.append(MaskedText(ids, segments, places, ids[places], MISSING))
    return pack_masked(texts, torch.device("cpu"))


def theirs(reference: Any, masked: MaskedBatch) -> list[Any]:
    """Text by text, without padding."""
    lengths = masked.batch.layout.lengths
    rows = zip(
        masked.batch.pieces.split(lengths), masked.batch.segments.split(lengths), strict=True
    )
    outputs = []
    for ids, segments in rows:
        more = {"token_type_ids": segments[None]} if segments.any() else {}
        outputs.append(reference(input_ids=ids[None], **more))
    return outputs


@torch.no_grad()
def test_logits_equal_transformers(reference: Any) -> None:
    masked = masked_batch()
    expected = torch.cat([output.logits[0] for output in theirs(reference, masked)])
    found = ours(reference)(masked).pieces
    assert found.shape == (len(masked.places), 99)
    assert (found - expected[masked.places]).abs().max() < 1e-5


@torch.no_grad()
def test_next_sentences_equal_transformers() -> None:
    torch.manual_seed(4)
    config = AutoConfig.for_model("bert", **COMMON | CONFIGS["bert"])
    reference = random_weights(BertForPreTraining(config))
    masked = masked_batch(pairs=True)
    outputs = theirs(reference, masked)
    guesses = ours(reference, next_sentence=True)(masked)
    expected = torch.cat([output.prediction_logits[0] for output in outputs])
    assert (guesses.pieces - expected[masked.places]).abs().max() < 1e-5
    assert guesses.follows is not None
    follows = torch.cat([output.seq_relationship_logits for output in outputs])
    assert (guesses.follows - follows).abs().max() < 1e-5


@torch.no_grad()
def test_transformers_loads_what_is_saved(reference: Any, tmp_path: Path) -> None:
    torch.manual_seed(6)
    model = LanguageModel(Encoder(ours(reference).encoder.spec), next_sentence=False).eval()
    draw_weights(model)
    spec = model.encoder.spec
    architecture = architecture_of(spec.family, next_sentence=False)
    assert architecture == type(reference).__name__
    write_json(tmp_path / "config.json", config_from_spec(spec) | {"architectures": [architecture]})
    save_file(family_tensors(model), tmp_path / "model.safetensors", metadata={"format": "pt"})
    loaded, info = AutoModelForMaskedLM.from_pretrained(tmp_path, output_loading_info=True)
    assert not info["missing_keys"]
    assert not info["unexpected_keys"]
    masked = masked_batch()
    expected = torch.cat([output.logits[0] for output in theirs(loaded.eval(), masked)])
    assert (model(masked).pieces - expected[masked.places]).abs().max() < 1e-5


def test_an_encoder_without_an_output_layer_is_given_one(reference: Any) -> None:
    model = ours(reference)
    prefix = reference.base_model_prefix
    bare = {k: v for k, v in reference.state_dict().items() if k.startswith(f"{prefix}.")}
    (note,) = load_heads(model, bare, "test")
    assert "no weights of its output layer" in note


def test_half_an_output_layer_is_refused(reference: Any) -> None:
    state = dict(reference.state_dict())
    names = OUTPUT_NAMES[reference.config.model_type]
    del state[f"{names.dense}.bias"]
    with pytest.raises(UserError, match=r"dense\.bias.*missing|transform\.bias.*missing"):
        load_heads(ours(reference), state, "test")


def test_an_untied_output_layer_is_told(reference: Any) -> None:
    names = OUTPUT_NAMES[reference.config.model_type]
    state = dict(reference.state_dict())
    state[f"{names.decoder}.weight"] = state[f"{names.decoder}.weight"] + 1
    (note,) = load_heads(ours(reference), state, "test")
    assert "not tied" in note


@pytest.mark.parametrize("training", [False, True])
def test_the_output_layer_teaches_the_embeddings(training: bool) -> None:
    spec = spec_from_config({"model_type": "bert", **COMMON, **SIZES}, "test")
    model = LanguageModel(Encoder(spec), next_sentence=True).train(training)
    masked = masked_batch()
    unseen = 98 - masked.batch.pieces.flip(0)  # some piece that is no input
    number = next(int(n) for n in unseen if n not in masked.batch.pieces)
    model(masked).pieces[:, number].sum().backward()
    gradient = model.encoder.embeddings.piece.weight.grad
    assert gradient is not None
    assert gradient[number].abs().sum() > 0
    assert "heads.output.bias" in dict(model.named_parameters())


def test_other_families_know_no_next_sentence() -> None:
    config = {"model_type": "roberta", **COMMON, **SIZES}
    with pytest.raises(UserError, match=r"next_sentence = false"):
        LanguageModel(Encoder(spec_from_config(config, "test")), next_sentence=True)
