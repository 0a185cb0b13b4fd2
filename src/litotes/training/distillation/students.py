"""Students: their first weights, and what they may imitate before they learn answers.

The first weights are those of an encoder by name or of a teacher, cut to size. An encoder may then
learn to compute as its teachers do; every text is shown by a teacher that was not trained on it:

hidden      Σ_l ‖P_l h_l − t_l'‖² / (pieces · width), P_l learned and thrown away (Jiao et al.
            2020, arXiv 1909.10351, §3.1); the student's layers are compared with evenly spaced ones
values      KL of softmax(V Vᵀ / √d) of the last layer (Wang et al. 2020, arXiv 2002.10957, §3.2)
relations   the same of queries, keys and values (Wang et al. 2021, arXiv 2012.15828, §3.1)

Relations are between pieces, so that widths need not agree: all heads' vectors are joined and cut
into as many relation heads as divide both widths.
"""

from __future__ import annotations

import math
import random
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import Tensor, nn

from litotes.core.errors import UserError
from litotes.core.machine import choose_device
from litotes.core.numbers import counted
from litotes.core.progress import Watch, prefix_watch
from litotes.core.values import Example
from litotes.encoder import pretrained
from litotes.encoder.encoder import Encoder
from litotes.encoder.families import EncoderSpec
from litotes.encoder.layout import Batch, Layout
from litotes.encoder.operations import Rows
from litotes.encoder.packing import TextSet, make_text_set
from litotes.encoder.pretrained import Pretrained
from litotes.encoder.reshaping import (
    evenly_spaced,
    keep_layers,
    layers_to_keep,
    narrow,
    rebuild_encoder,
)
from litotes.encoder.tokenizer import PieceTokenizer
from litotes.model.checkpoint import Model, load_model
from litotes.model.classifier import Classifier
from litotes.model.folder import open_model
from litotes.training.distillation.plan import DistillPlan, Matching, Shape
from litotes.training.objective import Objective, RunContext, derive_seed
from litotes.training.trainer import Trainer

STUDENT, BASELINE = "student", "baseline"
N_COMPARED = 200
"""Texts that show whether two tokenizers agree."""
_FRESH_SPREAD = 0.02
"""The standard deviation of random weights (Devlin et al. 2019)."""


def plan_shapes(plan: DistillPlan) -> dict[str, Shape]:
    """The shapes of all students of a distillation, by name; the first one is what it is for."""
    settings, model = plan.recipe.distill, plan.recipe.model
    is_taught = settings.start == "teacher"
    if is_taught and not settings.teachers:
        model = plan.recipe.teacher(0).model
    plain = Shape(
        model.encoder,
        fresh=settings.start == "fresh",
        layers=settings.layers,
        width=settings.width,
        max_pieces=plan.recipe.model.max_pieces,
    )
    able = (job.model_folder for job in plan.teachers.values() if job.shows)
    taught = replace(plain, teacher=next(able) if is_taught else None)
    shapes = {STUDENT: taught}
    for n_layers in settings.compare_layers:
        if n_layers != settings.layers:
            shapes[f"{STUDENT} of {counted(n_layers, 'layer')}"] = replace(taught, layers=n_layers)
    # without teachers there is no teacher to begin with
    return shapes | ({BASELINE: plain} if settings.baseline else {})


def a_teacher(plan: DistillPlan) -> tuple[Classifier, PieceTokenizer]:
    """A classifier as large as a teacher, whose weights may not be there yet, or be gone."""
    job = next(iter(plan.teachers.values()))
    if job.recipe is None:
        model = load_model(open_model(job.model_folder).models[0])
        return model.classifier, model.tokenizer
    settings = job.recipe.model
    source = pretrained.load(settings.encoder, **settings.attention_choices())
    tasks = list(plan.data.train.tasks.values())
    classifier = Classifier(source.encoder, tasks, head=settings.head, dropout=settings.dropout)
    return classifier, source.tokenizer


def check_shapes(plan: DistillPlan) -> None:
    """Refuses, before anything is trained, a size that an encoder cannot be cut to, and a student
    that cuts texts into other pieces than the teacher whose states it is to match.
    """
    settings = plan.recipe.distill
    for shape in plan_shapes(plan).values():
        has_come = shape.teacher is None or settings.teachers
        start = make_start(shape if has_come else replace(shape, teacher=None), seed=0)
    if settings.match != "none":
        _, theirs = a_teacher(plan)
        some = plan.data.train.examples[:N_COMPARED]
        check_aligned(len(aligned_texts(some, start.tokenizer, theirs)), len(some))


def make_start(shape: Shape, *, seed: int) -> Pretrained:
    """The student's encoder before it has learned anything."""
    source = _whole_encoder(shape)
    encoder = source.encoder
    if shape.layers is not None:
        encoder = keep_layers(encoder, layers_to_keep(encoder.spec, shape.layers))
    if shape.width is not None:
        encoder = narrow(encoder, shape.width)
    if shape.fresh:
        torch.manual_seed(seed)
        encoder = Encoder(encoder.spec)
        for parameter in encoder.parameters():
            if parameter.ndim > 1:
                nn.init.normal_(parameter, std=_FRESH_SPREAD)
    return replace(source, encoder=encoder.eval())


def _whole_encoder(shape: Shape) -> Pretrained:
    if shape.teacher is None:
        source = pretrained.load(shape.encoder, max_pieces=shape.max_pieces)
    else:
        model = load_model(shape.teacher)
        encoder = model.classifier.encoder
        if encoder.spec.heads_kept:
            raise UserError(
                f"{shape.teacher} lacks some of its attention heads, and no encoder can begin with"
                " it. Set distill.start = encoder, or name a dense teacher first."
            )
        encoder = rebuild_encoder(encoder, weighting="softmax", weighting_options={})
        encoder = rebuild_encoder(encoder, pruning="none", pruning_options={})
        source = Pretrained(encoder, model.tokenizer, model.base, None)
    n_layers = source.encoder.spec.n_layers
    if (shape.layers or 0) > n_layers:
        raise UserError(
            f"A student of {shape.layers} layers cannot be made of {n_layers}. Choose {n_layers} or"
            " fewer with distill.layers."
        )
    return source


# What of a teacher is imitated


class Imitation(nn.Module, ABC):
    """The distance of a student's inside to a teacher's, whatever the width of either. Its
    parameters learn with the student and are not kept.
    """

    @abstractmethod
    def look(self, encoder: Encoder, batch: Batch) -> list[Tensor]:
        """Computes what is compared, (piece, …) each."""

    @abstractmethod
    def forward(self, student: list[Tensor], teacher: list[Tensor], layout: Layout) -> Tensor:
        """The distance, a mean over pieces."""


class HiddenStates(Imitation):
    """The hidden states of every layer, through a linear map."""

    def __init__(self, student: EncoderSpec, teacher: EncoderSpec) -> None:
        super().__init__()
        self.n_layers = min(len(student.walk), len(teacher.walk))
        self.maps = nn.ModuleList(
            nn.Linear(student.width, teacher.width, bias=False) for _ in range(self.n_layers)
        )

    def look(self, encoder: Encoder, batch: Batch) -> list[Tensor]:
        n_walked = len(encoder.spec.walk)
        hidden, states = encoder.embeddings(batch), []
        for layer in range(n_walked):
            hidden = encoder.walk(hidden, batch.layout, start=layer, stop=layer + 1).hidden
            states.append(hidden)  # (piece, width)
        return [states[layer] for layer in evenly_spaced(self.n_layers, of=n_walked)]

    def forward(self, student: list[Tensor], teacher: list[Tensor], layout: Layout) -> Tensor:
        distances = [
            (own_map(own).float() - wanted.float()).square().mean()
            for own_map, own, wanted in zip(self.maps, student, teacher, strict=True)
        ]
        return torch.stack(distances).mean()


class Relations(Imitation):
    """The similarity of a text's pieces in the last layer, by the vectors in `parts`."""

    parts: tuple[int, ...] = (0, 1, 2)  # queries, keys, values

    def __init__(self, student: EncoderSpec, teacher: EncoderSpec) -> None:
        super().__init__()
        common = math.gcd(student.width, teacher.width)
        most = teacher.n_attention_heads
        self.n_heads = max(n for n in range(1, most + 1) if common % n == 0)

    def look(self, encoder: Encoder, batch: Batch) -> list[Tensor]:
        *before, last = encoder.spec.walk
        hidden = encoder.embeddings(batch)
        hidden = encoder.walk(hidden, batch.layout, stop=len(before)).hidden
        packed = encoder.block(last).attention.project(hidden).float()
        # (piece, relation_head, relation_width) each
        return [packed[:, part].flatten(1).unflatten(1, (self.n_heads, -1)) for part in self.parts]

    def forward(self, student: list[Tensor], teacher: list[Tensor], layout: Layout) -> Tensor:
        rows = Rows.of(layout)
        total = student[0].new_zeros(())
        for own, wanted in zip(student, teacher, strict=True):
            for part in zip(rows.split(own), rows.split(wanted), rows.live, strict=True):
                total = total + _divergence(*part)
        return total / (layout.n_pieces * self.n_heads * len(student))


class ValueRelations(Relations):
    """The same by values alone."""

    parts = (2,)


def _divergence(mine: Tensor, theirs: Tensor, live: Tensor | None) -> Tensor:
    """The sum over live rows of KL(theirs ‖ mine). (text, relation_head, piece, width)"""
    wanted, found = _relation(theirs, live), _relation(mine, live)
    rows = (wanted.exp() * (wanted - found)).sum(-1)  # (text, relation_head, query)
    return rows.sum() if live is None else rows.masked_fill(~live.squeeze(2), 0.0).sum()


def _relation(vectors: Tensor, live: Tensor | None) -> Tensor:
    """Log softmax(V Vᵀ / √d), (text, relation_head, query, key)"""
    affinity = vectors @ vectors.transpose(-1, -2) / math.sqrt(vectors.shape[-1])
    if live is not None:
        affinity = affinity.masked_fill(~live, -1e9)  # finite: 0 · −∞ is not a number
    return affinity.log_softmax(-1)


IMITATIONS: dict[str, type[Imitation]] = {
    "hidden": HiddenStates,
    "values": ValueRelations,
    "relations": Relations,
}


@dataclass(frozen=True)
class ShownTexts:
    """A teacher's encoder, and the same texts in its pieces and in the student's."""

    teacher: Encoder
    theirs: TextSet
    own: TextSet


Part = tuple[ShownTexts, list[int]]
"""Texts of a batch: one teacher shows them all."""


class Imitating(Objective):
    """An encoder learns to compute as its teachers do."""

    def __init__(
        self,
        student: Encoder,
        imitation: Imitation,
        shown: Sequence[ShownTexts],
        matching: Matching,
        context: RunContext,
    ) -> None:
        self.imitation, self.shown = imitation, shown
        settings = matching.settings
        n_batches = sum(-(-len(one.own) // settings.batch_texts) for one in shown)
        super().__init__(
            # the optimizer knows them by these names
            nn.ModuleDict({"encoder": student, "heads": imitation}),
            student,
            settings,
            context,
            seed=matching.seed,
            n_steps=n_batches * settings.epochs,
        )

    def seed_of(self, step: int) -> int:
        return derive_seed(self.seed, "match", step)

    def batches(self, epoch: int) -> list[Part]:
        generator = random.Random(derive_seed(self.seed, "order", epoch))
        size, batches = self.settings.batch_texts, []
        for one in self.shown:
            order = generator.sample(range(len(one.own)), len(one.own))
            batches += [(one, order[start:][:size]) for start in range(0, len(order), size)]
        generator.shuffle(batches)
        return batches

    def losses(self, batch: Part, step: int) -> Iterator[Sequence[Tensor]]:
        shown, places = batch
        own, theirs = (part.batch(places, self.device) for part in (shown.own, shown.theirs))
        with self.autocast():
            with torch.no_grad():
                wanted = self.imitation.look(shown.teacher, theirs)
            found = self.imitation.look(self.encoder, own)
            yield [self.imitation(found, wanted, own.layout)]


def match_encoder(
    student: Pretrained, matching: Matching, folder: Path, *, device: str | None, watch: Watch
) -> None:
    """Trains the student's encoder in place; a stopped one goes on. folder: of its checkpoints."""
    chosen, encoder = choose_device(device), student.encoder
    shown = [
        _show(load_model(folder), examples, student.tokenizer, chosen)
        for folder, examples in matching.shown
    ]
    n_texts = sum(len(examples) for _, examples in matching.shown)
    check_aligned(sum(len(one.own) for one in shown), n_texts)
    encoder.to(chosen)
    torch.manual_seed(derive_seed(matching.seed, "maps"))
    imitation = IMITATIONS[matching.kind](encoder.spec, shown[0].teacher.spec).to(chosen)
    context = RunContext(chosen, folder, watch=prefix_watch(watch, f"matching {matching.kind}"))
    trainer = Trainer(Imitating(encoder, imitation, shown, matching, context), context)
    trainer.run(resume=True)
    trainer.checkpoints.clear()
    encoder.cpu().eval()


def _show(
    model: Model, examples: Sequence[Example], tokenizer: PieceTokenizer, device: torch.device
) -> ShownTexts:
    """tokenizer: the student's."""
    aligned = aligned_texts(examples, tokenizer, model.tokenizer)
    theirs, own = (make_text_set(aligned, (), one) for one in (model.tokenizer, tokenizer))
    teacher = model.classifier.encoder.to(device).eval().requires_grad_(False)
    return ShownTexts(teacher, theirs, own)


def check_aligned(n_aligned: int, n_texts: int) -> None:
    """Refuses a student that cuts most texts into other pieces than its teacher."""
    if n_aligned < n_texts / 2:
        raise UserError(
            f"distill.match needs the same pieces in teacher and student, and only {n_aligned} of"
            f" {n_texts} texts have them. Set distill.match = none, or choose a student with the"
            " teacher's tokenizer."
        )


def aligned_texts(
    examples: Sequence[Example], one: PieceTokenizer, other: PieceTokenizer
) -> list[Example]:
    """The texts that both tokenizers cut at the same places."""
    texts, pairs = [one.text for one in examples], [one.pair for one in examples]
    read = zip(examples, one.read(texts, pairs), other.read(texts, pairs), strict=True)
    return [
        example
        for example, mine, theirs in read
        if (len(mine.pieces.ids), mine.words) == (len(theirs.pieces.ids), theirs.words)
    ]
