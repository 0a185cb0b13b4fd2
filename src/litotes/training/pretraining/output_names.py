"""How each family spells the output layer of its masked-language model, as in families.py."""

from __future__ import annotations

from dataclasses import dataclass

from litotes.core.errors import UserError
from litotes.encoder.families import FAMILIES


@dataclass(frozen=True)
class OutputNames:
    """The names of the transform's two parts, of the bias, and of the layer that is tied.

    activation: None where it is the encoder's own.
    """

    dense: str
    norm: str
    bias: str
    decoder: str
    activation: str | None = None

    @property
    def layers(self) -> dict[str, str]:
        """By our names."""
        return {"dense": self.dense, "norm": self.norm}


_LM_HEAD = OutputNames(
    "lm_head.dense", "lm_head.layer_norm", "lm_head.bias", "lm_head.decoder", activation="gelu"
)

OUTPUT_NAMES: dict[str, OutputNames] = {
    "bert": OutputNames(
        "cls.predictions.transform.dense",
        "cls.predictions.transform.LayerNorm",
        "cls.predictions.bias",
        "cls.predictions.decoder",
    ),
    "roberta": _LM_HEAD,
    "xlm-roberta": _LM_HEAD,
    "distilbert": OutputNames(
        "vocab_transform", "vocab_layer_norm", "vocab_projector.bias", "vocab_projector"
    ),
    "electra": OutputNames(
        "generator_predictions.dense",
        "generator_predictions.LayerNorm",
        "generator_lm_head.bias",
        "generator_lm_head",
        activation="gelu",
    ),
    "albert": OutputNames(
        "predictions.dense", "predictions.LayerNorm", "predictions.bias", "predictions.decoder"
    ),
    "mpnet": _LM_HEAD,
}

POOLER, NEXT_SENTENCE = "pooler.dense", "cls.seq_relationship"
"""BERT's two layers of next-sentence prediction; the first belongs to the encoder's names."""


def output_names(family: str) -> OutputNames:
    """Those of a family, or a sentence where there are none."""
    if family not in OUTPUT_NAMES:
        raise UserError(
            f"litotes cannot pretrain {family} encoders yet, only {', '.join(OUTPUT_NAMES)}."
        )
    return OUTPUT_NAMES[family]


def architecture_of(family: str, *, next_sentence: bool) -> str:
    """What `transformers` calls the whole model."""
    name = FAMILIES[family].architecture.removesuffix("Model")
    return f"{name}ForPreTraining" if next_sentence else f"{name}ForMaskedLM"
