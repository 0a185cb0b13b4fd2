"""A recipe of `kind = "translation"` becomes an encoder-decoder.

    loss = −Σ_t Σ_v q_t(v) log p(v | y_<t, x),   q_t = (1 − ε) [v = y_t] + ε / vocabulary

with label smoothing ε, and the rate of Vaswani et al. 2017 (arXiv 1706.03762, §5.3):

    rate(step) = highest · min(step / warm-up, √(warm-up / step))

The weights that are kept are the mean of those after the last epochs.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn import Parameter, functional
from torch.optim import AdamW, Optimizer

from litotes.core.errors import UserError, has_extra
from litotes.core.json_text import read_as, to_json
from litotes.core.numbers import counted
from litotes.core.storage import write_text
from litotes.data.parallel import Pair, ParallelTexts, load_parallel
from litotes.encoder import pretrained
from litotes.encoder.encoder import Encoder
from litotes.encoder.families import EncoderSpec
from litotes.encoder.tokenizer import PieceTokenizer
from litotes.training.checkpoints import RunState
from litotes.training.course import Course, Run
from litotes.training.objective import Objective, RunContext, derive_seed
from litotes.training.optimizer import parameter_groups
from litotes.training.recipe import TranslationRecipe
from litotes.training.translation.model import (
    DecoderSpec,
    EncoderDecoder,
    draw_weights,
    fix_positions,
    require_rows_alone,
)
from litotes.training.translation.pairs import PairSet, make_pair_set
from litotes.training.translation.scores import score_translations
from litotes.training.translation.translator import (
    SCORES,
    TranslationModel,
    Translator,
    find_frame,
    load_translation,
    save_translation,
)
from litotes.training.vocabularies import PADDING, train_byte_pairs

BETAS, EPSILON = (0.9, 0.98), 1e-9
"""Adam's, as in the paper."""
OUTPUTS = "translations.jsonl"
WIDTH = 256
"""The width of a model from scratch, where the recipe gives none."""


class TranslationObjective(Objective):
    """Learns the pairs of `train`; measures the loss on those of `valid`."""

    def __init__(
        self,
        model: EncoderDecoder,
        train: PairSet,
        valid: PairSet,
        recipe: TranslationRecipe,
        context: RunContext,
    ) -> None:
        self.translation, self.train, self.valid = model, train, valid
        super().__init__(
            model,
            model.encoder,
            recipe.training,
            context,
            seed=recipe.seed,
            n_steps=len(train.batches(recipe.training.batch_pieces)) * recipe.training.epochs,
        )

    def batches(self, epoch: int) -> list[list[int]]:
        seed = derive_seed(self.seed, "order", epoch)
        return self.train.batches(self.settings.batch_pieces, seed=seed)

    def losses(self, batch: Sequence[int], step: int) -> Iterator[list[Tensor]]:
        own, weight = self.share(batch)
        total = self._loss_sum(self.train, own, smoothing=self.settings.label_smoothing)
        yield [weight * total / self.train.n_guessed(batch)]

    def _loss_sum(self, pairs: PairSet, places: Sequence[int], *, smoothing: float = 0.0) -> Tensor:
        """Over all pieces of some pairs."""
        batch = pairs.pack(places, self.device)
        with self.autocast():
            logits = self.translation(batch.sources, batch.pieces, batch.layout)
        return functional.cross_entropy(
            logits.float(), batch.next_pieces, reduction="sum", label_smoothing=smoothing
        )

    def make_optimizer(self, parameters: Mapping[str, Parameter]) -> Optimizer:
        """Adam with the paper's averages; biases and norms are not decayed."""
        settings = self.settings
        usual = settings.learning_rate

        def rate_of(name: str) -> float:
            return settings.weighting_learning_rate or usual if ".weighting." in name else usual

        groups = parameter_groups(parameters, rate_of, settings.weight_decay)
        return AdamW(groups, betas=BETAS, eps=EPSILON, fused=self.device.type == "cuda")

    def rate(self, step: int) -> float:
        n_warmup = self.settings.warmup_steps
        return min((step + 1) / n_warmup, math.sqrt(n_warmup / (step + 1)))

    def set_progress(self, share: float) -> None:
        self.translation.set_progress(share)

    def judge(self, state: RunState) -> dict[str, float]:
        """The loss on the validation pairs; the weights become part of the mean of the last
        epochs', one epoch after the other.
        """
        found = {"valid_loss": self.measure()} if len(self.valid) else {}
        n_averaged = min(self.settings.averaged, self.settings.epochs)
        number = state.epoch + 1 - (self.settings.epochs - n_averaged)  # from 1
        if number == 1:
            self.tensors.keep_best()
        elif number > 1:
            for name, parameter in self.tensors.parameters.items():
                mean = self.tensors.best[name].to(parameter.device)
                self.tensors.best[name] = mean + (parameter.detach() - mean) / number
        return found

    @torch.no_grad()
    def measure(self) -> float:
        """The mean loss of a piece of the validation pairs, without smoothing."""
        self.translation.eval()
        batches = self.valid.batches(2 * self.settings.batch_pieces)
        total = sum(float(self._loss_sum(self.valid, places)) for places in batches)
        return total / max(self.valid.n_guessed(range(len(self.valid))), 1)

    def describe(self, line: Mapping[str, Any]) -> str:
        if "valid_loss" not in line:
            return ""
        loss = line["valid_loss"]
        return f"validation loss {loss:.3f} (perplexity {math.exp(min(loss, 50)):.1f})"


class TranslationCourse(Course):
    """Parallel texts → tokenizer → pairs of pieces → training → test translations → folder."""

    model: TranslationModel
    objective: TranslationObjective
    outputs: Sequence[str] = ()  # what became of the test texts

    def __init__(
        self, recipe: TranslationRecipe, *, corpus: ParallelTexts | None = None, lessons: Any = None
    ) -> None:
        super().__init__(recipe, corpus=corpus, lessons=lessons)
        self.start = Start(recipe)
        if recipe.training.precision == "tf32":
            torch.set_float32_matmul_precision("high")
        self.texts = corpus or load_parallel(recipe.data.source)
        self.key = f"{recipe.key()}-{self.texts.fingerprint()[:16]}"

    def begin(self, context: RunContext) -> TranslationObjective:
        tokenizer = self.start.choose_tokenizer(self.texts.train)
        find_frame(tokenizer)  # refuses before the work
        network = self.start.make_model(tokenizer).to(context.device)
        parts = (self.texts.train, self.texts.valid)
        train, valid = (make_pair_set(part, tokenizer) for part in parts)
        self.model = TranslationModel(network, tokenizer, self.recipe.search)
        self.objective = TranslationObjective(network, train, valid, self.recipe, context)
        return self.objective

    def test(self, state: RunState, context: RunContext) -> Run:
        objective, texts = self.objective, self.texts
        notes = [*texts.notes, *self._cut_notes(objective.train.n_cut, "training")]
        valid_loss = objective.measure() if len(objective.valid) else None
        scored = None
        if not texts.test:
            notes.append("There are no test texts: the model is not tested.")
        elif context.processes.is_first:
            scored = self._translate_test(context, notes)
        data = {"name": texts.name, "n_train": len(objective.train), "sha256": texts.fingerprint()}
        facts = {"key": self.key, "recipe": self.recipe.model_dump(mode="json"), "data": data}
        scores = {
            "history": state.history,
            "seconds": state.seconds,
            "steps": state.step,
            "valid_loss": valid_loss,
            "test": scored,
            "notes": notes,
            "key": self.key,
        }
        return Run(context.folder, (replace(self.model, facts=facts),), scores, tuple(notes))

    def _translate_test(self, context: RunContext, notes: list[str]) -> dict[str, Any] | None:
        test = self.texts.test
        context.watch("translating the test texts", 0, len(test), "")
        translator = Translator(self.model, device=str(context.device))
        found = translator.translate([pair.source for pair in test])
        notes += self._cut_notes(sum(one.truncated for one in found), "test")
        self.outputs = [one.output for one in found]
        if has_extra("translate"):
            return score_translations(self.outputs, [pair.targets for pair in test]).as_json()
        notes.append(
            "BLEU and chrF were not computed: `pip install 'litotes[translate]'`. The translations"
            f" of the test texts are in {OUTPUTS}."
        )
        return None

    def _cut_notes(self, n_cut: int, part: str) -> list[str]:
        if not n_cut:
            return []
        return [
            f"{counted(n_cut, f'{part} text')} had more than {self.model.tokenizer.max_pieces}"
            " pieces and lost the rest. Set model.max_pieces."
        ]

    def save(self, run: Run) -> None:
        lines = []
        for pair, output in zip(self.texts.test, self.outputs, strict=True):
            line = {"text": pair.source, "output": output, "references": list(pair.targets)}
            lines.append(to_json(line) + "\n")
        if lines:
            write_text(run.folder / OUTPUTS, "".join(lines))
        save_translation(run.model, run.folder, run.scores)

    def load(self, folder: Path) -> tuple[str, Run]:
        model = load_translation(folder)
        scores = read_as(folder / SCORES, dict[str, Any], advice="Choose another --out.")
        return str(model.facts.get("key")), Run(folder, (model,), scores, tuple(scores["notes"]))


class Start:
    """The start of a run: a tokenizer, and an encoder-decoder of new weights or around an
    encoder that is there. What cannot begin is refused before any text is read.
    """

    def __init__(self, recipe: TranslationRecipe) -> None:
        self.recipe, settings = recipe, recipe.model
        require_rows_alone(settings.weighting)
        self.loaded: pretrained.Pretrained | None = None
        if settings.encoder is None:
            return
        self.loaded = pretrained.load(
            settings.encoder,
            weighting=settings.weighting,
            weighting_options=settings.weighting_options,
        )
        width = settings.width or self.loaded.encoder.spec.width
        if width % settings.n_attention_heads:
            raise UserError(
                f"The decoder's width {width} is not a multiple of {settings.n_attention_heads}"
                " attention heads. Set model.n_attention_heads or model.width."
            )

    def choose_tokenizer(self, pairs: Iterable[Pair]) -> PieceTokenizer:
        """Takes that of the encoder, or learns one from both sides of the pairs."""
        settings, most = self.recipe.model, self.recipe.model.max_pieces
        if self.loaded is not None:
            content = self.loaded.tokenizer.to_json()
            most = min(most, self.loaded.tokenizer.max_pieces)
        else:
            texts = (text for pair in pairs for text in (pair.source, *pair.targets))
            content = train_byte_pairs(
                texts, n_vocabulary=settings.n_vocabulary, lower_case=settings.lower_case
            )
        return PieceTokenizer(Path("tokenizer.json"), max_pieces=most, content=content.encode())

    def make_model(self, tokenizer: PieceTokenizer) -> EncoderDecoder:
        """The model before its first step, the same for the same seed."""
        torch.manual_seed(self.recipe.seed)
        settings, is_new = self.recipe.model, self.loaded is None
        encoder = self._new_encoder(tokenizer) if self.loaded is None else self.loaded.encoder
        spec = DecoderSpec(
            n_vocabulary=encoder.spec.n_vocabulary,
            source_width=encoder.spec.width,
            positions=settings.positions,
            tied=settings.tied,
            **self._shape(settings.width or encoder.spec.width),
        )
        model = EncoderDecoder(encoder, spec)
        if is_new:
            draw_weights(model)
        else:
            draw_weights(model.decoder, keep=encoder.embeddings.piece)
        if model.output is not None:
            draw_weights(model.output)
        return model

    def _new_encoder(self, tokenizer: PieceTokenizer) -> Encoder:
        spec = EncoderSpec(
            family="bert",
            n_vocabulary=tokenizer.n_vocabulary,
            activation="relu",
            norm_epsilon=1e-6,
            padding_piece=tokenizer.find_piece(PADDING) or 0,
            **self._shape(self.recipe.model.width or WIDTH),
        )
        encoder = Encoder(spec)
        if self.recipe.model.positions == "sinusoidal":
            assert encoder.embeddings.position is not None
            fix_positions(encoder.embeddings.position)
        return encoder

    def _shape(self, width: int) -> dict[str, Any]:
        """Collects what a new encoder and the decoder have in common."""
        settings = self.recipe.model
        common = settings.model_dump(include=_COMMON)
        inner = settings.inner_width or 2 * width
        return {**common, "width": width, "inner_width": inner, "n_positions": settings.max_pieces}


_COMMON = {
    *("n_layers", "n_attention_heads", "dropout", "attention_dropout", "norm_first"),
    *("weighting", "weighting_options"),
}
