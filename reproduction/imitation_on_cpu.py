"""One more pass over imitated texts on a CPU, from the mean of some students.

Steps are taken by `transformers` in bfloat16 over padded texts of like length: on a processor with
products of that kind one and a half times as fast as `Loop`. Without dropout: no text is read
twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers import BertConfig, BertModel

from litotes.encoder.families import config_from_spec
from litotes.encoder.pretrained import load_family_tensors, to_family_tensors
from litotes.encoder.tokenizer import Pieces
from litotes.model.checkpoint import Model, average_models, load_model, save_model
from reproduction.imitated_texts import ASKED, VARIANT, read_texts
from reproduction.imitation import (
    TASKS,
    TEXTS,
    Student,
    StudentJob,
    answer,
    chosen_places,
    imitated_shares,
    save_answers,
    text_set,
)
from reproduction.printed_progress import PrintedProgress

N_PER_STEP = 128
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
    size = N_SORTED * N_PER_STEP
    for start in range(0, len(order), size):
        some = sorted(order[start : start + size], key=lengths.__getitem__)
        parts = [some[place : place + N_PER_STEP] for place in range(0, len(some), N_PER_STEP)]
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
