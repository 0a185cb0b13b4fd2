"""Teachers' answers, from one teacher to the lessons of a student.

A teacher is never asked about a text it was trained on. Where classes were weighted by w in its
training, its answer q leans towards rare ones; what it holds for likely is

    p_c ∝ q_c / w_c

because the weighted loss is least at q_c ∝ w_c p_c. In a source in which a label is known to be
rarer, or more frequent, than where the teachers learned, answers move there:

    p′_c ∝ p_c · known_c / learned_c          Saerens, Latinne & Decaestecker 2002

A teacher that has learned from texts of which every other one is sarcastic expects as much of film
reviews, where one in twenty may be.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import Tensor

from litotes.core.errors import UserError
from litotes.core.machine import choose_device
from litotes.core.numbers import counted
from litotes.core.progress import Watch
from litotes.core.registry import grouped, pick
from litotes.core.storage import remove_folder, write_folder
from litotes.core.values import Example, Task
from litotes.data.corpus import example_key
from litotes.data.sources import load
from litotes.encoder.packing import make_text_set
from litotes.encoder.pretrained import read_tensors
from litotes.evaluation.evaluate import predict_corpus
from litotes.model.checkpoint import Model, load_model
from litotes.model.folder import open_model
from litotes.prediction.predictor import Predictor
from litotes.training.distillation.plan import (
    DistillPlan,
    Job,
    class_weights_of,
    unseen_places,
)
from litotes.training.inputs import Inputs, all_logits
from litotes.training.lessons import Answers, Lessons

NEUTRAL = "neutral"
_NAMED = "{} in distill.prevalence called"
_FILE = "answers.safetensors"


@dataclass(frozen=True)
class GivenAnswers:
    """The answers of a model.

    places: of the texts answered, in `Job.asked` (text,). probabilities: without any lean, {task:
    (text, class)}; a number for a regression. test: its labels (by number) for the test texts of
    each task, {task: (text,)}.
    """

    places: Tensor
    probabilities: Mapping[str, Tensor]
    test: Mapping[str, Tensor]


def ask(job: Job, watch: Watch) -> None:
    """Asks and tests the models of a job, and keeps what they answer."""
    places = unseen_places(job.model_folder, job.asked) if job.asked else []
    models = [load_model(part) for part in open_model(job.model_folder).models]
    tensors = {"places": torch.tensor(places, dtype=torch.long)}
    if places:
        for model in models:
            tensors |= _ask_model(model, [job.asked[place] for place in places], job, watch)
    if job.test is not None:
        predictor = Predictor(*models, device=job.device)
        for task, found in predict_corpus(predictor, job.test, watch=watch).items():
            tensors[f"test/{task}"] = torch.from_numpy(found.predicted())
    if job.answers.exists():  # damaged
        remove_folder(job.answers)
    write_folder(job.answers, lambda folder: save_file(tensors, folder / _FILE))


def _ask_model(model: Model, asked: Sequence[Example], job: Job, watch: Watch) -> dict[str, Tensor]:
    """Asks a model for the probabilities of the student's tasks, {answers/task: (text, class)}."""
    classifier = model.classifier.to(choose_device(job.device))
    inputs = Inputs(make_text_set(asked, (), model.tokenizer), classifier.device)
    logits = all_logits(inputs, classifier, watch=watch, what="answers")
    found = {}
    for task in (classifier.tasks[name] for name in job.tasks if name in logits):
        weights = class_weights_of(model.facts, task)
        found[f"answers/{task.name}"] = without_lean(logits[task.name], weights).contiguous()
    return found


def read_answers(folder: Path) -> GivenAnswers:
    """The answers that a finished job has left in its folder of answers."""
    by_kind: dict[str, dict[str, Tensor]] = {"places": {}, "answers": {}, "test": {}}
    for name, tensor in read_tensors(folder / _FILE).items():
        kind, _, task = name.partition("/")
        by_kind[kind][task] = tensor
    return GivenAnswers(by_kind["places"][""], by_kind["answers"], by_kind["test"])


def without_lean(logits: Tensor, weights: Tensor | None) -> Tensor:
    """The probabilities of a model that was trained with class weights, as if it had not been.

    A class that it never saw has the weight 0, and stays impossible. None: the answer is a number,
    given as it is. (text, class)
    """
    if weights is None:
        return logits
    divided = torch.where(weights > 0, logits.double().softmax(-1) / weights, 0.0)
    return (divided / divided.sum(-1, keepdim=True)).float()


# From the answers of all teachers to the lessons of a student


def gather_lessons(plan: DistillPlan) -> Lessons:
    """The mean answer of all teachers that have one, text by text; texts without labels that none
    has answered are left out.
    """
    settings = plan.recipe.distill
    answers = with_known_prevalence(with_even_answers(mean_answers(plan), plan), plan)
    answered = {key for by_text in answers.values() for key in by_text}
    others = tuple(example for example in plan.others if example_key(example) in answered)
    how = "ready ones, each for texts that it was not trained on"
    if not settings.teachers:
        encoder = plan.recipe.teacher(0).model.encoder
        how = f"{encoder}, cross-fitted in {settings.folds} folds"
    about = f"Distilled from {counted(len(plan.teachers), 'teacher')} ({how})."
    return Lessons(answers, others, settings.share, settings.temperature, about)


def mean_answers(plan: DistillPlan) -> Answers:
    """{task: {key of a text: (class,)}}"""
    collected: dict[str, dict[str, list[Tensor]]] = defaultdict(lambda: defaultdict(list))
    for job in plan.teachers.values():
        given = read_answers(job.answers)
        for task, probabilities in given.probabilities.items():
            for place, row in zip(given.places.tolist(), probabilities, strict=True):
                collected[task][example_key(job.asked[place])].append(row)
    return {
        task: {key: tuple(torch.stack(rows).mean(0).tolist()) for key, rows in by_text.items()}
        for task, by_text in collected.items()
    }


def with_even_answers(answers: Answers, plan: DistillPlan) -> Answers:
    """The answers, but that every label is as likely as the others for texts that `distill.even`
    calls neutral.
    """
    found = {task: dict(by_text) for task, by_text in answers.items()}
    for source in plan.recipe.distill.even:
        n_even = 0
        for example in load(source):
            for name, label in example.labels.items():
                task = plan.data.train.tasks.get(name)
                if task is not None and label == NEUTRAL and NEUTRAL not in task.labels:
                    even = (1 / task.n_outputs,) * task.n_outputs
                    found.setdefault(name, {})[example_key(example)] = even
                    n_even += 1
        if not n_even:
            raise UserError(
                f"distill.even names {source}, which calls no text neutral in a task where the"
                " student has no such label. Ask it for such texts (of a built-in corpus by"
                " classes=3), or leave it out."
            )
    return found


def with_known_prevalence(answers: Answers, plan: DistillPlan) -> Answers:
    """The answers, those to texts without a label moved to the shares that `distill.prevalence`
    states for their source; where there is no answer, these shares themselves.
    """
    found = {task: dict(by_text) for task, by_text in answers.items()}
    train = plan.data.train
    tasks = {name: task for name, task in train.tasks.items() if not task.is_regression}
    texts = grouped((*train, *plan.others), lambda one: str(one.source))
    for source, by_task in plan.recipe.distill.prevalence.items():
        keys = set(map(example_key, pick(texts, source, _NAMED.format("source"))))
        for name, given in by_task.items():
            task = pick(tasks, name, _NAMED.format("task"))
            labelled = [one for one in train if name in one.labels]
            counts = Counter(one.labels[name] for one in labelled)
            learned = [counts[label] / len(labelled) for label in task.labels]
            known, by_text = stated_shares(task, given), found.setdefault(name, {})
            # a text may come twice: with the label of another task, or in two sources of texts
            for key in keys.difference(map(example_key, labelled)):
                by_text[key] = move_answer(by_text.get(key), known, learned)
    return found


def stated_shares(task: Task, given: Mapping[str, float]) -> tuple[float, ...]:
    """The stated shares in the order of the labels; what is left goes to the others alike."""
    for label in given:
        pick(dict.fromkeys(task.labels), label, _NAMED.format(f"label of {task.name}"))
    n_others = len(task.labels) - len(given)
    left = (1 - sum(given.values())) / max(n_others, 1)
    shares = tuple(given.get(label, left) for label in task.labels)
    if not all(0 < share < 1 for share in shares) or not math.isclose(sum(shares), 1):
        raise UserError(
            f"The shares of {task.name} in distill.prevalence must lie between 0 and 1 and leave"
            " something for the labels that are not named."
        )
    return shares


def move_answer(
    answer: Sequence[float] | None, known: tuple[float, ...], learned: Sequence[float]
) -> tuple[float, ...]:
    """A label that no teacher has seen stays impossible; no answer becomes what is known."""
    if answer is None:
        return known
    parts = zip(answer, known, learned, strict=True)
    odds = [p * k / share if share else 0.0 for p, k, share in parts]
    return tuple(one / sum(odds) for one in odds)


def lesson_notes(plan: DistillPlan, lessons: Lessons) -> list[str]:
    """Says which texts learn from their label alone."""
    train = plan.data.train
    n_without = {
        task: sum(example_key(one) not in lessons.answers.get(task, {}) for one in train)
        for task in train.tasks
    }
    return [
        f"{n} of {len(train)} training texts learn {task} from their label alone: every teacher of"
        " it was trained on them."
        for task, n in n_without.items()
        if n
    ]
