"""One run: a recipe becomes a translation model.

parallel texts → tokenizer → pairs of pieces → loop → mean of weights → test translations → folder
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from litotes.core.errors import has_extra
from litotes.core.json_text import read_as, to_json
from litotes.core.machine import choose_device
from litotes.core.numbers import counted
from litotes.core.progress import Watch, ignore_progress
from litotes.core.storage import write_json, write_text
from litotes.core.text import one_line
from litotes.data.parallel import Pair, ParallelTexts, load_parallel
from litotes.training.checkpoints import Checkpoints
from litotes.training.epoch_loop import RunContext
from litotes.training.processes import hold_folder, join_processes
from litotes.training.run_folder import find_finished_model
from litotes.training.translation.folder import (
    OUTPUTS,
    SCORES,
    TranslationModel,
    load_translation,
    save_translation,
)
from litotes.training.translation.loop import TranslationLoop
from litotes.training.translation.pairs import make_pair_set
from litotes.training.translation.recipe import TranslationRecipe
from litotes.training.translation.scores import score_translations
from litotes.training.translation.start import Start
from litotes.training.translation.translator import Translation, Translator, find_frame

NO_SCORES = (
    "BLEU and chrF were not computed: `pip install 'litotes[translate]'`. The translations of the"
    f" test texts are in {OUTPUTS}."
)


@dataclass(frozen=True)
class TranslationRun:
    """What a finished run leaves behind. scores: what `scores.json` holds."""

    folder: Path
    scores: Mapping[str, Any]

    def __repr__(self) -> str:
        return one_line(self, folder=str(self.folder), test=self.scores["test"])

    @property
    def notes(self) -> Sequence[str]:
        return self.scores["notes"]


def train_translation(
    recipe: TranslationRecipe,
    out: Path,
    *,
    texts: ParallelTexts | None = None,
    device: str | None = None,
    resume: bool = False,
    watch: Watch = ignore_progress,
) -> TranslationRun:
    """Trains one model into the folder `out`; with `resume` goes on where a stopped run was.

    texts: those that are already in memory, in place of `data.source`.
    """
    start, chosen = Start(recipe), choose_device(device)
    if recipe.training.precision == "tf32":
        torch.set_float32_matmul_precision("high")
    texts = texts or load_parallel(recipe.data.source)
    key = f"{recipe.key()}-{texts.fingerprint()[:16]}"
    checkpoints = Checkpoints(out / "checkpoints", key=key)
    with join_processes(chosen.type) as processes, hold_folder(out, processes):
        finished = find_finished_model(out, key, checkpoints, resume=resume, load=load_translation)
        if finished is not None:
            scores = read_as(out / SCORES, dict[str, Any], advice="Choose another --out.")
        else:
            context = RunContext(chosen, out, key, processes, watch)
            scores = _run(start, texts, context, resume=resume)
        if processes.is_first:
            checkpoints.clear()
    return TranslationRun(out, scores)


def _run(start: Start, texts: ParallelTexts, context: RunContext, *, resume: bool) -> Any:
    recipe, folder = start.recipe, context.folder
    if context.processes.is_first:
        write_json(folder / "recipe.json", recipe.model_dump(mode="json"))
    tokenizer = start.choose_tokenizer(texts.train)
    find_frame(tokenizer)  # refuses before the work
    network = start.make_model(tokenizer).to(context.device)
    train, valid = (make_pair_set(part, tokenizer) for part in (texts.train, texts.valid))
    loop = TranslationLoop(network, train, valid, recipe, context=context)
    if resume:
        loop.resume()
    context.processes.wait()
    state = loop.run()
    facts = {
        "key": context.key,
        "recipe": recipe.model_dump(mode="json"),
        "data": {"name": texts.name, "n_train": len(train), "sha256": texts.fingerprint()},
    }
    model = TranslationModel(network, tokenizer, recipe.search.model_dump(), facts)
    scores: dict[str, Any] = {
        "history": state.history,
        "seconds": state.seconds,
        "steps": state.step,
        "valid_loss": loop.measure() if len(valid) else None,
        "test": None,
        "notes": [*texts.notes, *_notes(train.n_cut, tokenizer.max_pieces)],
        "key": context.key,
    }
    if context.processes.is_first:
        _finish(model, texts.test, scores, context)
    context.processes.wait()
    return scores


def _notes(n_cut: int, max_pieces: int, part: str = "training") -> list[str]:
    if not n_cut:
        return []
    return [
        f"{counted(n_cut, f'{part} text')} had more than {max_pieces} pieces and lost the rest."
        " Set model.max_pieces."
    ]


def _finish(
    model: TranslationModel, test: Sequence[Pair], scores: dict[str, Any], context: RunContext
) -> None:
    """Translates the test texts, scores them, and writes the folder."""
    if test:
        context.watch("translating the test texts", 0, len(test), "")
        translator = Translator(model, device=str(context.device))
        found = translator.translate([pair.source for pair in test])
        scores["notes"] += _notes(
            sum(one.truncated for one in found), model.tokenizer.max_pieces, "test"
        )
        write_text(context.folder / OUTPUTS, _as_lines(test, found))
        if has_extra("translate"):
            outputs = [one.output for one in found]
            scored = score_translations(outputs, [pair.targets for pair in test])
            scores["test"] = scored.as_json()
        else:
            scores["notes"].append(NO_SCORES)
    else:
        scores["notes"].append("There are no test texts: the model is not tested.")
    save_translation(model, context.folder, scores)


def _as_lines(test: Sequence[Pair], found: Sequence[Translation]) -> str:
    lines = []
    for pair, one in zip(test, found, strict=True):
        line = {"text": pair.source, "output": one.output, "references": list(pair.targets)}
        lines.append(to_json(line) + "\n")
    return "".join(lines)
