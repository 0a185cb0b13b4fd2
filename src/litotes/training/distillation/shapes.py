"""The first weights of a student: an encoder by name or a teacher's, cut to size."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import torch

from litotes.core.errors import UserError
from litotes.core.numbers import counted
from litotes.encoder import pretrained
from litotes.encoder.encoder import Encoder
from litotes.encoder.families import EncoderSpec
from litotes.encoder.pretrained import Pretrained
from litotes.encoder.reshaping import keep_layers, layers_to_keep, narrow, rebuild_encoder
from litotes.model.checkpoint import load_model
from litotes.model.folder import open_model
from litotes.training.distillation.matching import aligned_texts, check_aligned
from litotes.training.distillation.plan import DistillPlan

STUDENT, BASELINE = "student", "baseline"
N_COMPARED = 200
"""Texts that show whether two tokenizers agree."""

_FRESH_SPREAD = 0.02
"""The standard deviation of random weights (Devlin et al. 2019)."""


@dataclass(frozen=True)
class Shape:
    """The first weights of a student: an encoder by name, cut to size.

    teacher: the model folder whose encoder it is instead. fresh: its shape alone counts.
    """

    encoder: str
    teacher: Path | None = None
    fresh: bool = False
    layers: int | None = None
    width: int | None = None
    max_pieces: int | None = None

    @property
    def is_whole(self) -> bool:
        """Whether it is the named encoder as it is."""
        return self == Shape(self.encoder, max_pieces=self.max_pieces)


def plan_shapes(plan: DistillPlan) -> dict[str, Shape]:
    """The shapes of all students of a distillation, by name; the first one is what it is for."""
    settings, encoder = plan.recipe.distill, plan.recipe.student.model.encoder
    teacher = None
    if settings.start == "teacher":
        teacher = next(job.model_folder for job in plan.teachers.values() if job.shows)
        if not settings.teachers:
            encoder = plan.recipe.teacher(0).model.encoder
    # without teachers there is no teacher to begin with
    plain = Shape(
        encoder,
        fresh=settings.start == "fresh",
        layers=settings.layers,
        width=settings.width,
        max_pieces=plan.recipe.student.model.max_pieces,
    )
    taught = replace(plain, teacher=teacher)
    shapes = {STUDENT: taught}
    for n_layers in dict.fromkeys(settings.compare_layers):
        if n_layers != settings.layers:
            shapes[f"{STUDENT} of {counted(n_layers, 'layer')}"] = replace(taught, layers=n_layers)
    if settings.baseline:
        shapes[BASELINE] = plain
    return shapes


def check_shapes(plan: DistillPlan) -> None:
    """Refuses, before anything is trained, a size that an encoder cannot be cut to, and a student
    that cuts texts into other pieces than the teacher whose states it is to match.
    """
    settings = plan.recipe.distill
    for shape in plan_shapes(plan).values():
        has_come = shape.teacher is None or settings.teachers
        start = make_start(shape if has_come else replace(shape, teacher=None), seed=0)
    if settings.match == "none":
        return
    if settings.teachers:
        folder = open_model(settings.teachers[0]).models[0]
        theirs = load_model(folder).tokenizer
    else:
        model = plan.recipe.teacher(0).model
        theirs = pretrained.load(model.encoder, max_pieces=model.max_pieces).tokenizer
    some = plan.data.train.examples[:N_COMPARED]
    check_aligned(len(aligned_texts(some, start.tokenizer, theirs)), len(some))


def make_start(shape: Shape, *, seed: int) -> Pretrained:
    """The student's encoder before it has learned anything."""
    source = _whole_encoder(shape)
    spec = source.encoder.spec
    encoder = source.encoder
    if shape.layers is not None:
        if shape.layers > spec.n_layers:
            raise UserError(
                f"A student of {shape.layers} layers cannot be made of {spec.n_layers}. Choose"
                f" {spec.n_layers} or fewer with distill.layers."
            )
        encoder = keep_layers(encoder, layers_to_keep(spec, shape.layers))
    if shape.width is not None:
        encoder = narrow(encoder, shape.width)
    if shape.fresh:
        encoder = _fresh_encoder(encoder.spec, seed=seed)
    return replace(source, encoder=encoder.eval())


def _fresh_encoder(spec: EncoderSpec, *, seed: int) -> Encoder:
    torch.manual_seed(seed)
    encoder = Encoder(spec)
    for parameter in encoder.parameters():
        if parameter.ndim > 1:
            torch.nn.init.normal_(parameter, std=_FRESH_SPREAD)
    return encoder


def _whole_encoder(shape: Shape) -> Pretrained:
    if shape.teacher is None:
        return pretrained.load(shape.encoder, max_pieces=shape.max_pieces)
    model = load_model(shape.teacher)
    if model.classifier.encoder.spec.heads_kept:
        raise UserError(
            f"{shape.teacher} lacks some of its attention heads, and no encoder can begin with it."
            " Set distill.start = encoder, or name a dense teacher first."
        )
    encoder = rebuild_encoder(model.classifier.encoder, weighting="softmax", weighting_options={})
    encoder = rebuild_encoder(encoder, pruning="none", pruning_options={})
    return Pretrained(encoder, model.tokenizer, model.base, None)
