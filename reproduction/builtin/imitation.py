"""Teachers that are asked about hundreds of thousands of texts, and students that imitate them.

What is learned and what is asked is in `texts`. Each teacher learns from all folds but one, by what
people said, and answers everything. To a text of the teachers' own a student answers the mean of

    what people said   and   what the one teacher answered that has not learned from its fold

and to a variant, of which people have said nothing, what all teachers answered in the mean:

    l = Σ_task KL(p_task ‖ q_task)

The last pass begins with the mean of some students and runs on a CPU: steps are taken by
`transformers` in bfloat16 over padded texts of like length, without dropout, for no text is read
twice.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.nn import functional
from transformers import BertConfig, BertModel

from litotes.core.machine import choose_device
from litotes.core.progress import Watch
from litotes.core.values import Example
from litotes.data.corpus import SARCASM, SENTIMENT
from litotes.encoder import pretrained
from litotes.encoder.families import config_from_spec
from litotes.encoder.packing import TextSet, make_text_set
from litotes.encoder.pretrained import load_family_tensors, to_family_tensors
from litotes.encoder.tokenizer import Pieces, PieceTokenizer
from litotes.model.checkpoint import Model, load_model, save_model
from litotes.model.classifier import Classifier
from litotes.training.classification import Classification
from litotes.training.distillation.plan import DistillRecipe
from litotes.training.distillation.teachers import move_answer, stated_shares
from litotes.training.inputs import Inputs, all_logits, freeze
from litotes.training.losses import SoftAnswers
from litotes.training.objective import RunContext, autocast
from litotes.training.recipe import TrainingSettings
from litotes.training.trainer import Trainer
from reproduction.builtin.averaging import average_models
from reproduction.builtin.texts import ASKED, N_FOLDS, OLDER, RECIPE, VARIANT, Row, read_texts


class PrintedProgress:
    """Prints a line when another job is done, not for every look at the workers."""

    def __init__(self) -> None:
        self.last: tuple[str, int] | None = None

    def __call__(self, what: str, done: int, total: int, note: str) -> None:
        if self.last != (what, done):
            print(f"{what}: {done} of {total} {note}", file=sys.stderr, flush=True)
        self.last = what, done


TASKS = {task.name: task for task in (SENTIMENT, SARCASM)}
TEXTS, ANSWERS = "texts.jsonl.gz", "answers.safetensors"
STUDENTS_FOLDER = "students"
SMALLEST = 1e-4
"""Of a probability to be imitated."""
TEACHER_SETTINGS = TrainingSettings(
    epochs=3,
    patience=3,
    batch_texts=64,
    learning_rate=4e-5,
    held_out=0,
    class_weights=False,
    checkpoint_seconds=1e6,
)


@dataclass(frozen=True)
class Student:
    """What students differ in.

    begins_as: an encoder, or `builtin`. n_variants: of all of them; None: all. share: of the
    teacher against what else is known of a text. ears: how much the model whose ears are asked
    counts for the sarcasm of older texts. older: how often they are read, ours once.
    """

    seed: int
    epochs: int = 3
    learning_rate: float = 2e-4
    begins_as: str = "minilm"
    n_variants: int | None = None
    share: float = 0.5
    ears: float = 0.0
    older: int = 1


N_PER_STEP = 256


@dataclass(frozen=True)
class TeacherJob:
    """A teacher that does not learn from `fold`; None: the ears, which are only asked."""

    out: Path
    fold: int | None
    teacher: str
    device: str | None

    @property
    def folder(self) -> Path:
        return self.out / ("ears" if self.fold is None else f"teacher-{self.fold}")

    def is_done(self) -> bool:
        return (self.folder / ANSWERS).is_file()


@dataclass(frozen=True)
class StudentJob:
    """A student, what it is called, and where it finds the answers and leaves its own."""

    out: Path
    name: str
    student: Student
    device: str | None

    @property
    def folder(self) -> Path:
        return self.out / STUDENTS_FOLDER / self.name.replace(" ", "-")

    @property
    def model_folder(self) -> Path:
        return self.folder / "model"

    def is_done(self) -> bool:
        return (self.folder / ANSWERS).is_file()


def run_teacher(job: TeacherJob, watch: Watch) -> None:
    """Trains on the other folds and answers every text; keeps the answers alone."""
    rows, device = read_texts(job.out / TEXTS), choose_device(job.device)
    if job.fold is None:
        model = load_model(job.teacher)
        classifier, tokenizer = model.classifier.to(device), model.tokenizer
    else:
        source = pretrained.load(job.teacher)
        torch.manual_seed(job.fold)
        classifier = Classifier(source.encoder, list(TASKS.values()), head="mean", dropout=0.1)
        classifier, tokenizer = classifier.to(device), source.tokenizer
        learned = [row for row in rows if row.kind not in (VARIANT, ASKED)]
        learned = [row for row in learned if row.fold != job.fold]
        context = RunContext(device, job.folder, str(job.fold), watch=watch)
        texts, shares = text_set(learned, tokenizer), known_shares(learned)
        learn(classifier, texts, shares, TEACHER_SETTINGS, seed=job.fold, context=context)
    save_answers(answer(classifier, tokenizer, rows, device), job.folder)


def run_student(job: StudentJob, watch: Watch) -> None:
    student, device = job.student, choose_device(job.device)
    rows = read_texts(job.out / TEXTS)
    shares = imitated_shares(rows, job.out, student)
    chosen = chosen_places(rows, student)
    model = begin(student)
    settings = TrainingSettings(
        epochs=student.epochs,
        patience=student.epochs,
        batch_texts=N_PER_STEP,
        learning_rate=student.learning_rate,
        freeze_below=1,
        held_out=0,
        class_weights=False,
        checkpoint_seconds=1e6,
    )
    classifier = model.classifier.to(device)
    freeze(classifier, settings.freeze_below)
    learned = [rows[place] for place in chosen]
    own = {task: share[chosen] for task, share in shares.items()}
    context = RunContext(device, job.folder, job.name, watch=watch)
    texts = text_set(learned, model.tokenizer)
    learn(classifier, texts, own, settings, seed=student.seed, context=context)
    asked = [row for row in rows if row.kind == ASKED]
    answers = answer(classifier, model.tokenizer, asked, device)
    kept = replace(model, classifier=classifier.cpu().eval(), calibration={})
    save_model(kept, job.model_folder, card="", compact=True)
    save_answers(answers, job.folder)


def begin(student: Student) -> Model:
    builtin = load_model("builtin")
    if student.begins_as == "builtin":
        return builtin
    source = pretrained.load(student.begins_as)
    torch.manual_seed(student.seed)
    classifier = Classifier(source.encoder, list(TASKS.values()), head="linear", dropout=0.1)
    # its facts are of the same texts; the rest is written anew
    return Model(classifier, source.tokenizer, source.name, source.sha256, {}, builtin.facts)


def chosen_places(rows: Sequence[Row], student: Student) -> list[int]:
    """Of the texts a student learns from, each as often as it is read."""
    variants = [place for place, row in enumerate(rows) if row.kind == VARIANT]
    if student.n_variants is not None:
        order = np.random.default_rng(student.seed).permutation(len(variants))
        variants = [variants[place] for place in order[: student.n_variants]]
    others = [place for place, row in enumerate(rows) if row.kind not in (VARIANT, ASKED)]
    chosen = [*others, *variants]
    more = [place for place in chosen if rows[place].older]
    return [*chosen, *(more * (student.older - 1))]


def known_shares(rows: Sequence[Row]) -> dict[str, Tensor]:
    """How probable the second class is, by people; not a number where nothing is known. (text,)"""
    found = {}
    for task in TASKS:
        values = [getattr(row, task) for row in rows]
        found[task] = torch.tensor([np.nan if value is None else value for value in values])
    return found


def imitated_shares(rows: Sequence[Row], out: Path, student: Student) -> dict[str, Tensor]:
    """What a student is to answer. {task: (text,)}"""
    teachers = [load_shares(out / f"teacher-{fold}") for fold in range(N_FOLDS)]
    folds = torch.tensor([row.fold for row in rows])
    is_variant = torch.tensor([row.kind == VARIANT for row in rows])
    found = {}
    for task, known in known_shares(rows).items():
        several = torch.stack([shares[task] for shares in teachers])  # (teacher, text)
        unseen = several.gather(0, folds.clamp(min=0)[None])[0]
        taught = torch.where(is_variant, several.mean(0), unseen)
        if task == SARCASM.name and student.ears:
            taught = mix_ears(taught, rows, load_shares(out / "ears")[task], student.ears)
        mixed = student.share * taught + (1 - student.share) * known
        found[task] = torch.where(known.isnan(), taught, mixed)
    return found


def mix_ears(taught: Tensor, rows: Sequence[Row], heard: Tensor, share: float) -> Tensor:
    """The ears' answers to older texts, moved to how rare sarcasm is in their source."""
    heard = heard.clamp(SMALLEST, 1 - SMALLEST)
    moved = heard
    for source, stated in DistillRecipe.read(RECIPE).distill.prevalence.items():
        of_it = torch.tensor([row.source == source for row in rows])
        bases = of_it & torch.tensor([row.kind == OLDER for row in rows])
        known = stated_shares(SARCASM, stated[SARCASM.name])
        mean = heard[bases].mean().item()
        answers = [move_answer((1 - p, p), known, (1 - mean, mean)) for p in heard[of_it].tolist()]
        moved = moved.masked_scatter(of_it, torch.tensor([sarcasm for _, sarcasm in answers]))
    older = torch.tensor([row.older for row in rows])
    return torch.where(older, share * moved + (1 - share) * taught, taught)


def learn(
    classifier: Classifier,
    texts: TextSet,
    shares: Mapping[str, Tensor],
    settings: TrainingSettings,
    *,
    seed: int,
    context: RunContext,
) -> None:
    context.folder.mkdir(parents=True, exist_ok=True)
    inputs, teacher = Inputs(texts, context.device), soft_answers(shares)
    objective = Classification(classifier, inputs, settings, context, seed=seed, teacher=teacher)
    Trainer(objective, context).run()


def soft_answers(shares: Mapping[str, Tensor]) -> SoftAnswers:
    """As answers that count alone; where nothing is known, nothing."""
    logits, weights = {}, {}
    for task, share in shares.items():
        second = share.nan_to_num(0.5).clamp(SMALLEST, 1 - SMALLEST)
        logits[task] = torch.stack([1 - second, second], -1).log().float()  # (text, class)
        weights[task] = (~share.isnan()).float()
    return SoftAnswers(logits, 1.0, 1.0, shares=weights, weights=weights)


def text_set(rows: Sequence[Row], tokenizer: PieceTokenizer) -> TextSet:
    """Without labels."""
    return make_text_set([Example(row.text, {}) for row in rows], TASKS.values(), tokenizer)


def answer(
    classifier: Classifier, tokenizer: PieceTokenizer, rows: Sequence[Row], device: torch.device
) -> dict[str, Tensor]:
    """By how much the second class leads. {task: (text,)}"""
    inputs = Inputs(text_set(rows, tokenizer), device)
    with torch.inference_mode(), autocast(TEACHER_SETTINGS, device):
        logits = all_logits(inputs, classifier)
    return {task: values[:, 1] - values[:, 0] for task, values in logits.items()}


def save_answers(answers: Mapping[str, Tensor], folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    halves = {task: values.half().contiguous() for task, values in answers.items()}
    save_file(halves, folder / ANSWERS)


def load_leads(folder: Path) -> dict[str, Tensor]:
    """{task: (text,)}"""
    return {task: lead.float() for task, lead in load_file(folder / ANSWERS).items()}


def load_shares(folder: Path) -> dict[str, Tensor]:
    return {task: lead.sigmoid() for task, lead in load_leads(folder).items()}


N_PER_PADDED_STEP = 128
N_SORTED = 64
"""Steps whose texts are sorted by length together."""
WARMUP = 0.03
SHOWN = 50
"""Steps from one line of progress to the next."""


@dataclass(frozen=True)
class LastPass:
    """parts: students as whose mean it begins. ears: as `Student` has it."""

    parts: tuple[str, ...]
    seed: int
    learning_rate: float
    ears: float


def run_last_pass(out: Path, name: str, course: LastPass, *, n_texts: int) -> None:
    """n_texts: all that people said something of, and so many variants as there is room for."""
    job = StudentJob(out, name, Student(course.seed, ears=course.ears), None)
    if job.is_done():
        return
    parts = [StudentJob(out, part, job.student, None).model_folder for part in course.parts]
    begin = average_models(list(map(load_model, parts)))
    rows = read_texts(out / TEXTS)
    n_variants = n_texts - sum(row.kind not in (VARIANT, ASKED) for row in rows)
    student = replace(job.student, n_variants=max(n_variants, 0))
    chosen = chosen_places(rows, student)
    shares = {task: own[chosen] for task, own in imitated_shares(rows, out, student).items()}
    pieces = text_set([rows[place] for place in chosen], begin.tokenizer).pieces
    save_model(train_padded(begin, pieces, shares, course), job.model_folder, card="", compact=True)
    saved = load_model(job.model_folder)
    asked = [row for row in rows if row.kind == ASKED]
    save_answers(
        answer(saved.classifier, saved.tokenizer, asked, saved.classifier.device), job.folder
    )


def train_padded(
    model: Model, pieces: Sequence[Pieces], shares: Mapping[str, Tensor], course: LastPass
) -> Model:
    """The model after one pass; embeddings and the first layer stay."""
    classifier, spec = model.classifier, model.classifier.encoder.spec
    tensors = to_family_tensors(classifier.encoder)
    dropout = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    config = BertConfig(**{**config_from_spec(spec), **dropout}, attn_implementation="sdpa")
    bert = BertModel(config, add_pooling_layer=False)
    bert.load_state_dict(tensors)
    bert.embeddings.requires_grad_(False)
    bert.encoder.layer[0].requires_grad_(False)
    outputs = {task: classifier.heads.get_submodule(task).output for task in TASKS}
    _learn(bert, outputs, pieces, shares, course)
    load_family_tensors(classifier.encoder, bert.state_dict(), "bert")
    return replace(model, classifier=classifier.eval(), calibration={})


def _learn(
    bert: BertModel,
    outputs: Mapping[str, nn.Module],
    pieces: Sequence[Pieces],
    shares: Mapping[str, Tensor],
    course: LastPass,
) -> None:
    modules = nn.ModuleList([bert, *outputs.values()])
    parameters = [one for one in modules.parameters() if one.requires_grad]
    optimizer = torch.optim.AdamW(parameters, lr=course.learning_rate, fused=True)
    steps = list(batches_by_length([len(one.ids) for one in pieces], seed=course.seed))
    watch = PrintedProgress()
    for number, places in enumerate(steps):
        done = number / len(steps)
        factor = min((number + 1) / (WARMUP * len(steps)), (1 - done) / (1 - WARMUP))
        for group in optimizer.param_groups:
            group["lr"] = course.learning_rate * factor
        ids, live = pad([pieces[place].ids for place in places])
        with torch.autocast("cpu", torch.bfloat16):
            encoded = bert(input_ids=ids, attention_mask=live)
            hidden = encoded.last_hidden_state  # (text, piece, width)
            logits = {task: output(hidden[:, 0]) for task, output in outputs.items()}
        loss = sum_of_divergences(logits, {task: own[places] for task, own in shares.items()})
        loss.backward()
        nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        optimizer.zero_grad()
        if number % SHOWN == 0:
            watch("last pass", number, len(steps), f"loss {loss:.3f}")


def batches_by_length(lengths: Sequence[int], *, seed: int) -> Iterator[list[int]]:
    """All places once, in batches of texts of like length, in random order."""
    generator = torch.Generator().manual_seed(seed)
    order = torch.randperm(len(lengths), generator=generator).tolist()
    size = N_SORTED * N_PER_PADDED_STEP
    for start in range(0, len(order), size):
        some = sorted(order[start : start + size], key=lengths.__getitem__)
        parts = [
            some[place : place + N_PER_PADDED_STEP]
            for place in range(0, len(some), N_PER_PADDED_STEP)
        ]
        for place in torch.randperm(len(parts), generator=generator).tolist():
            yield parts[place]


def pad(texts: Sequence[Sequence[int]]) -> tuple[Tensor, Tensor]:
    """Pieces and which of them are there, (text, piece)."""
    longest = max(map(len, texts))
    ids = torch.tensor([[*text, *([0] * (longest - len(text)))] for text in texts])
    lengths = torch.tensor([len(text) for text in texts])
    return ids, (torch.arange(longest) < lengths[:, None]).long()


def sum_of_divergences(logits: Mapping[str, Tensor], shares: Mapping[str, Tensor]) -> Tensor:
    """Cross-entropy with what is to be answered, of texts where that is known."""
    total = torch.zeros(())
    for task, own in shares.items():
        known = ~own.isnan()
        wanted = torch.stack([1 - own[known], own[known]], -1)
        total = total + functional.cross_entropy(logits[task][known].float(), wanted)
    return total
