"""Each family's spelling of its masked-language model's output layer, as in families.py."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from litotes.core.errors import UserError, reason_of
from litotes.core.numbers import Counts, Floats
from litotes.core.registry import pick
from litotes.core.values import MISSING
from litotes.encoder.encoder import Encoder
from litotes.encoder.families import FAMILIES, EncoderSpec
from litotes.encoder.operations import ACTIVATIONS
from litotes.encoder.packing import batches_without_gradients
from litotes.encoder.pretrained import extra_tensors, normalise_names, to_family_tensors
from litotes.evaluation.scores import N_RESAMPLES, interval
from litotes.kernels.encode import encode
from litotes.training.pretraining.masking import MaskedBatch, MaskedTexts


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


# An encoder that guesses pieces, and whether one text follows another.
#
#     z = norm(act(W h + c))          h: the state of a chosen piece
#     p(piece) = softmax(E z + b)     E: the encoder's own piece embeddings
#     p(follows) = softmax(V tanh(U h₀ + u) + v)     h₀: the state of [CLS]
#
# Devlin et al. 2019 (arXiv 1810.04805), §3.1; Liu et al. 2019 (arXiv 1907.11692). Only chosen
# pieces go through the output layer: its product with the whole vocabulary is what costs.

SPREAD = 0.02
"""The standard deviation of new weights."""


Guesses = tuple[Tensor, Tensor | None]
"""Logits of the chosen pieces (chosen piece, piece of the vocabulary), and of whether the second
text of each pair follows (text, 2); None: that is not asked.
"""


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

    @property
    def architecture(self) -> str:
        """The name of the whole model in `transformers`."""
        name = FAMILIES[self.encoder.spec.family].architecture.removesuffix("Model")
        return f"{name}For{'PreTraining' if self.next_sentence else 'MaskedLM'}"

    def forward(self, masked: MaskedBatch) -> Guesses:
        hidden = encode(self.encoder, masked.batch).hidden  # (piece, width)
        embeddings = self.encoder.embeddings.piece.weight
        pieces = self.heads["output"](hidden[masked.places], embeddings)
        if not self.next_sentence:
            return pieces, None
        firsts = hidden[masked.batch.layout.starts]  # (text, width)
        return pieces, self.heads["next_sentence"](firsts)


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
    names, notes = output_names(family), []
    if names.bias not in named and f"{names.decoder}.bias" in named:
        named[names.bias] = named[f"{names.decoder}.bias"]  # the same, under its second name
    for part, weights in _family_names(model).items():
        found = {ours: named[theirs] for ours, theirs in weights.items() if theirs in named}
        if not found:
            notes.append(f"{where} has no weights of its {part}: it starts with random ones.")
        elif missing := sorted(weights.keys() - found.keys()):
            raise UserError(
                f"{where}: the weight {weights[missing[0]]!r} of its {part} is missing."
            )
        try:
            model.load_state_dict(found, strict=False)
        except RuntimeError as error:  # of other shapes than the encoder's description says
            raise UserError(f"{where}: {reason_of(error)}") from error
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
    encoder, state = model.encoder, model.state_dict()
    prefix = FAMILIES[encoder.spec.family].prefix
    tensors = {f"{prefix}{name}": tensor for name, tensor in to_family_tensors(encoder).items()}
    for weights in _family_names(model).values():
        for ours, theirs in weights.items():
            name = f"{prefix}{theirs}" if theirs.startswith(POOLER) else theirs
            tensors[name] = state[ours].detach().cpu().contiguous().clone()
    return tensors | extra_tensors(encoder)


def _family_names(model: LanguageModel) -> dict[str, dict[str, str]]:
    """Lists, for each part next to the encoder, the family's names of its weights by ours."""
    names = output_names(model.encoder.spec.family)
    output = _of_layers("heads.output.", dense=names.dense, norm=names.norm)
    parts = {"output layer": output | {"heads.output.bias": names.bias}}
    if model.next_sentence:
        layers = _of_layers("heads.next_sentence.", pooler=POOLER, output=NEXT_SENTENCE)
        parts["next-sentence layer"] = layers
    return parts


def _of_layers(prefix: str, **layers: str) -> dict[str, str]:
    return {
        f"{prefix}{ours}.{kind}": f"{theirs}.{kind}"
        for ours, theirs in layers.items()
        for kind in ("weight", "bias")
    }


# How well pieces of held-out texts are guessed, always the same pieces.
#
#     perplexity = exp(−1/n Σ log p(piece | the text around it))
#
# over the n pieces that are chosen once, when the run begins. It compares runs with the same
# tokenizer on the same texts; it is not the perplexity of a model that reads from left to right.


class HeldOut:
    """Masked texts that stay the same for a whole run.

    counts: how often each piece occurs in the texts learned from. (piece of the vocabulary,)
    """

    def __init__(self, texts: MaskedTexts, counts: Counts) -> None:
        self.texts, targets = texts, texts.targets.numpy()
        if not len(targets):
            raise UserError(
                "The held-out texts are so few that no piece of them was chosen. Give more texts,"
                " or raise data.held_out."
            )
        self.n_pieces = len(targets)
        # one more of each: a piece may be new
        shares = (counts + 1) / (counts.sum() + len(counts))  # (piece of the vocabulary,)
        self.unigram = float(np.exp(-np.log(shares[targets]).mean()))

    def measure(self, model: LanguageModel) -> tuple[dict[str, float], Floats]:
        """Perplexity, accuracy and, where it is asked, that of what follows what; and the losses of
        the chosen pieces, summed by text (text,). In evaluation mode, in float32.
        """
        model.eval()
        device, texts = model.encoder.device, self.texts
        losses, n_right, follows_right = [], 0, []
        with torch.no_grad():
            for places in batches_without_gradients(texts.lengths, device):
                masked = texts.pack(places, device)
                pieces, follows = model(masked)
                losses.append(_losses_by_text(pieces, masked).double().cpu().numpy())
                n_right += int((pieces.argmax(-1) == masked.targets).sum())
                if follows is not None:
                    is_right = follows.argmax(-1) == masked.follows
                    follows_right += is_right[masked.follows != MISSING].tolist()
        by_text = np.concatenate(losses)
        perplexity = float(np.exp(by_text.sum() / self.n_pieces))
        found = {"perplexity": perplexity, "accuracy": n_right / self.n_pieces}
        if follows_right:
            found["next_sentence"] = sum(follows_right) / len(follows_right)
        return found, by_text

    def score(self, model: LanguageModel) -> dict[str, Any]:
        """The same with what is needed to judge it.

        interval: 95 % bootstrap interval of the perplexity, over texts. unigram: the perplexity of
        guessing each piece by how common it is in the texts learned from.
        """
        found, losses = self.measure(model)
        return {
            "n_texts": len(losses),
            "n_pieces": self.n_pieces,
            "perplexity": found["perplexity"],
            "interval": self._interval(losses),
            "unigram": self.unigram,
            "accuracy": found["accuracy"],
            "next_sentence": found.get("next_sentence"),
        }

    def _interval(self, losses: Floats) -> tuple[float, float]:
        """Texts are drawn with replacement."""
        generator, found = np.random.default_rng(0), np.empty(N_RESAMPLES)
        n_chosen = np.array([int(own[-1].sum()) for own in self.texts.by_text])  # (text,)
        for number in range(N_RESAMPLES):
            drawn = generator.integers(len(losses), size=len(losses))
            found[number] = losses[drawn].sum() / max(n_chosen[drawn].sum(), 1)
        return interval(np.exp(found))


def _losses_by_text(pieces: Tensor, masked: MaskedBatch) -> Tensor:
    """(text,)"""
    losses = functional.cross_entropy(pieces.float(), masked.targets, reduction="none")
    layout = masked.batch.layout
    by_text = torch.zeros(layout.n_texts, device=losses.device)
    return by_text.index_add(0, layout.texts[masked.places], losses)
