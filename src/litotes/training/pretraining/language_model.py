"""An encoder that guesses pieces, and whether one text follows another.

    z = norm(act(W h + c))          h: the state of a chosen piece
    p(piece) = softmax(E z + b)     E: the encoder's own piece embeddings
    p(follows) = softmax(V tanh(U h₀ + u) + v)     h₀: the state of [CLS]

Devlin et al. 2019 (arXiv 1810.04805), §3.1; Liu et al. 2019 (arXiv 1907.11692). Only chosen pieces
go through the output layer: its product with the whole vocabulary is what costs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from litotes.core.errors import UserError
from litotes.core.registry import pick
from litotes.encoder.block import ACTIVATIONS
from litotes.encoder.device_encoding import encode
from litotes.encoder.encoder import Encoder
from litotes.encoder.families import FAMILIES
from litotes.encoder.spec import EncoderSpec
from litotes.encoder.weights import extra_tensors, normalise_names, to_family_tensors
from litotes.training.pretraining.masking import MaskedBatch
from litotes.training.pretraining.output_names import NEXT_SENTENCE, POOLER, output_names

SPREAD = 0.02
"""The standard deviation of new weights."""


@dataclass(frozen=True)
class Guesses:
    """Logits of the chosen pieces (chosen piece, piece of the vocabulary), and of whether the
    second text of each pair follows (text, 2).
    """

    pieces: Tensor
    follows: Tensor | None


class OutputLayer(nn.Module):
    """States (piece, width) → logits (piece, piece of the vocabulary)."""

    def __init__(self, spec: EncoderSpec) -> None:
        super().__init__()
        width = spec.embedding_width or spec.width
        self.dense = nn.Linear(spec.width, width)
        self.norm = nn.LayerNorm(width, eps=spec.norm_epsilon)
        self.bias = nn.Parameter(torch.zeros(spec.n_vocabulary))
        name = output_names(spec.family).activation or spec.activation
        self.activation = pick(ACTIVATIONS, name, "activation")

    def forward(self, hidden: Tensor, embeddings: Tensor) -> Tensor:
        """embeddings: the encoder's, (piece of the vocabulary, embedding_width)."""
        transformed = self.norm(self.activation(self.dense(hidden)))
        return functional.linear(transformed, embeddings, self.bias)


class NextSentence(nn.Module):
    """The state of each text's first piece (text, width) → logits (text, 2)."""

    def __init__(self, spec: EncoderSpec) -> None:
        super().__init__()
        self.pooler = nn.Linear(spec.width, spec.width)
        self.output = nn.Linear(spec.width, 2)

    def forward(self, firsts: Tensor) -> Tensor:
        return self.output(torch.tanh(self.pooler(firsts)))


class LanguageModel(nn.Module):
    """MaskedBatch → Guesses. The names of its two parts are those of a classifier, by which the
    optimizer knows them.
    """

    def __init__(self, encoder: Encoder, *, next_sentence: bool) -> None:
        super().__init__()
        spec = encoder.spec
        self.encoder = encoder
        self.heads = nn.ModuleDict({"output": OutputLayer(spec)})
        if next_sentence:
            if spec.family != "bert":
                raise UserError(
                    f"Next-sentence prediction is BERT's, and this encoder is {spec.family}. Set"
                    " objective.next_sentence = false."
                )
            self.heads["next_sentence"] = NextSentence(spec)
        draw_weights(self.heads)

    @property
    def next_sentence(self) -> bool:
        return "next_sentence" in self.heads

    def forward(self, masked: MaskedBatch) -> Guesses:
        hidden = encode(self.encoder, masked.batch).hidden  # (piece, width)
        embeddings = self.encoder.embeddings.piece.weight
        pieces = self.heads["output"](hidden[masked.places], embeddings)
        if not self.next_sentence:
            return Guesses(pieces, None)
        firsts = hidden[masked.batch.layout.starts]  # (text, width)
        return Guesses(pieces, self.heads["next_sentence"](firsts))


def draw_weights(module: nn.Module) -> None:
    """New weights as BERT's: normal, small; biases 0, norms 1."""
    for part in module.modules():
        if isinstance(part, nn.Linear | nn.Embedding):
            nn.init.normal_(part.weight, std=SPREAD)
        if isinstance(part, nn.Linear) and part.bias is not None:
            nn.init.zeros_(part.bias)


def load_heads(model: LanguageModel, tensors: Mapping[str, Tensor], where: str) -> list[str]:
    """Copies the output layer of a checkpoint, as far as it is there; gives notes for the user."""
    family = model.encoder.spec.family
    named = normalise_names(tensors, FAMILIES[family].prefix)
    names = output_names(family)
    if names.bias not in named and f"{names.decoder}.bias" in named:
        named[names.bias] = named[f"{names.decoder}.bias"]  # the same, under its second name
    notes = []
    for part, weights in _family_names(model).items():
        found = [theirs for theirs in weights.values() if theirs in named]
        if not found:
            notes.append(f"{where} has no weights of its {part}: it starts with random ones.")
        elif len(found) < len(weights):
            missing = next(theirs for theirs in weights.values() if theirs not in named)
            raise UserError(f"{where}: the weight {missing!r} of its {part} is missing.")
        else:
            _copy(model, {ours: named[theirs] for ours, theirs in weights.items()}, where)
    decoder = named.get(f"{names.decoder}.weight")
    if decoder is not None and not torch.equal(decoder, model.encoder.embeddings.piece.weight):
        notes.append(
            f"{where} has an output layer that is not tied to its piece embeddings: they are used"
            " in its place."
        )
    return notes


def family_tensors(model: LanguageModel) -> dict[str, Tensor]:
    """All weights under the names `transformers` gives them in a whole language model.

    What a weighting has learned, which no family has a name for, keeps ours.
    """
    encoder = model.encoder
    prefix = FAMILIES[encoder.spec.family].prefix
    tensors = {f"{prefix}{name}": tensor for name, tensor in to_family_tensors(encoder).items()}
    state = model.state_dict()
    for weights in _family_names(model).values():
        for ours, theirs in weights.items():
            name = f"{prefix}{theirs}" if theirs.startswith(POOLER) else theirs
            tensors[name] = state[ours].detach().cpu().contiguous().clone()
    return tensors | extra_tensors(encoder)


def _family_names(model: LanguageModel) -> dict[str, dict[str, str]]:
    """Of each part beside the encoder: the names of its weights, the family's by ours."""
    names = output_names(model.encoder.spec.family)
    output = {"heads.output.bias": names.bias}
    for ours, theirs in names.layers.items():
        for kind in ("weight", "bias"):
            output[f"heads.output.{ours}.{kind}"] = f"{theirs}.{kind}"
    parts = {"output layer": output}
    if model.next_sentence:
        layers = {"pooler": POOLER, "output": NEXT_SENTENCE}
        parts["next-sentence layer"] = {
            f"heads.next_sentence.{ours}.{kind}": f"{theirs}.{kind}"
            for ours, theirs in layers.items()
            for kind in ("weight", "bias")
        }
    return parts


def _copy(model: LanguageModel, values: Mapping[str, Tensor], where: str) -> None:
    state = model.state_dict()
    with torch.no_grad():
        for name, value in values.items():
            if value.shape != state[name].shape:
                raise UserError(
                    f"{where}: the weights of {name!r} have shape {tuple(value.shape)}, the"
                    f" encoder's description says {tuple(state[name].shape)}."
                )
            state[name].copy_(value)
