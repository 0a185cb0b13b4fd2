"""One teacher: trained on texts of other folds, or ready in a folder; asked, and its answers kept.

A teacher is never asked about a text it was trained on. Where classes were weighted by w in its
training, its answer q leans towards rare ones; what it holds for likely is

    p_c ∝ q_c / w_c

because the weighted loss is least at q_c ∝ w_c p_c.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import Tensor

from litotes.core.errors import UserError
from litotes.core.machine import choose_device
from litotes.core.progress import Watch, prefix_watch
from litotes.core.storage import is_complete, remove_folder, write_folder
from litotes.core.values import Example
from litotes.data.corpus import Corpus
from litotes.encoder.packing import make_text_set
from litotes.encoder.pretrained import read_tensors
from litotes.evaluation.evaluate import predict_corpus
from litotes.model.checkpoint import Model, load_model
from litotes.model.folder import is_model_folder, open_model, read_trained_texts, text_hash
from litotes.prediction.predictor import Predictor
from litotes.training.inputs import PieceInputs, all_logits
from litotes.training.recipe import Recipe
from litotes.training.run import train

_FILE = "answers.safetensors"


@dataclass(frozen=True)
class TeacherJob:
    """A teacher and the texts it is to answer.

    recipe, corpus: what it is trained by and on; None: the model is ready in `model_folder`.
    asked: without those that it turns out to have been trained on. test: texts to score it on.
    shows: whether students look at its layers. folder: where its answers are kept. label: before
    its own progress.
    """

    name: str
    recipe: Recipe | None
    corpus: Corpus | None
    model_folder: Path
    asked: tuple[Example, ...]
    test: Corpus | None
    tasks: tuple[str, ...]
    folder: Path
    shows: bool
    keep_model: bool
    device: str | None
    label: str = ""

    @property
    def answers(self) -> Path:
        return self.folder / "answers"

    def is_done(self) -> bool:
        if self.keep_model and not is_model_folder(self.model_folder):
            return False
        return is_complete(self.answers)


@dataclass(frozen=True)
class TeacherAnswers:
    """What a teacher answered.

    places: of the texts answered, in `TeacherJob.asked` (text,). probabilities: without any lean,
    {task: (text, class)}; a number for a regression. test: its labels for the test texts of each
    task, {task: (text,)}.
    """

    places: Tensor
    probabilities: Mapping[str, Tensor]
    test: Mapping[str, Tensor]


def run_teacher(job: TeacherJob, watch: Watch) -> None:
    """Trains, asks and tests a teacher, or does what is left of it."""
    if job.is_done():
        return
    if job.label:
        watch = prefix_watch(watch, job.label)
    if job.recipe is not None:
        folder, corpus = job.model_folder, job.corpus
        train(job.recipe, folder, corpus=corpus, device=job.device, resume=True, watch=watch)
    if not is_complete(job.answers):
        if job.answers.exists():
            remove_folder(job.answers)
        tensors = _ask(job, watch)
        write_folder(job.answers, lambda folder: save_file(tensors, folder / _FILE))
    if job.recipe is not None and not job.keep_model:
        remove_folder(job.model_folder)


def read_answers(job: TeacherJob) -> TeacherAnswers:
    """The answers that a finished job has left."""
    tensors = read_tensors(job.answers / _FILE)
    by_kind: dict[str, dict[str, Tensor]] = {"answers": {}, "test": {}}
    for name, tensor in tensors.items():
        kind, slash, task = name.partition("/")
        if slash:
            by_kind[kind][task] = tensor
    return TeacherAnswers(tensors["places"], by_kind["answers"], by_kind["test"])


def without_lean(logits: Tensor, weights: Tensor | None) -> Tensor:
    """The probabilities of a model that was trained with class weights, as if it had not been.

    A class that it never saw has the weight 0, and stays impossible. None: the answer is a number,
    given as it is. (text, class)
    """
    if weights is None:
        return logits
    divided = torch.where(weights > 0, logits.double().softmax(-1) / weights, 0.0)
    return (divided / divided.sum(-1, keepdim=True)).float()


def _ask(job: TeacherJob, watch: Watch) -> dict[str, Tensor]:
    """The tensors of the file of answers."""
    places = unseen_places(job.model_folder, job.asked)
    asked = [job.asked[place] for place in places]
    models = [load_model(part) for part in open_model(job.model_folder).models]
    tensors = {"places": torch.tensor(places, dtype=torch.long)}
    for model in models:
        for task, answers in ask_model(model, asked, job, watch).items():
            tensors[f"answers/{task}"] = answers.contiguous()
    if job.test is not None:
        predictor = Predictor(*models, device=job.device)
        for task, found in predict_corpus(predictor, job.test, watch=watch).items():
            tensors[f"test/{task}"] = torch.from_numpy(found.predicted())
    return tensors


def unseen_places(folder: Path, asked: Sequence[Example]) -> list[int]:
    """The places of the texts that the model of a folder was not trained on."""
    trained_on = read_trained_texts(folder)
    if trained_on is None:
        raise UserError(
            f"{folder} does not say which texts it was trained on, and must not teach those. Choose"
            " a model that this litotes has trained."
        )
    hashes = [text_hash(example) for example in asked]
    return [place for place, own in enumerate(hashes) if own not in trained_on]


def ask_model(
    model: Model, asked: Sequence[Example], job: TeacherJob, watch: Watch
) -> dict[str, Tensor]:
    """What a model holds for likely, for the student's tasks. {task: (text, class)}"""
    if not asked:
        return {}
    device = choose_device(job.device)
    classifier = model.classifier.to(device)
    inputs = PieceInputs(make_text_set(asked, (), model.tokenizer), device)
    answers = {}
    for task, logits in all_logits(inputs, classifier, watch=watch, what="answers").items():
        if task in job.tasks:
            answers[task] = without_lean(logits, class_weights_of(model, task))
    return answers


def class_weights_of(model: Model, task: str) -> Tensor | None:
    """The weights that the classes of a task had in a model's training; None for a regression."""
    if model.classifier.tasks[task].multi_label:
        raise UserError(
            f"A teacher may give {task} several labels, which a student cannot learn from it yet:"
            " leave it out with data.tasks."
        )
    if model.classifier.tasks[task].is_regression:
        return None
    stated = model.facts.get("class_weights", {}).get(task)
    if stated is None:
        raise UserError(
            "A teacher does not say how its classes were weighted, by which its answers lean."
            " Train it again with this litotes."
        )
    return torch.tensor(stated, dtype=torch.float64)
