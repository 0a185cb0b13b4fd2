"""One pretraining: a recipe becomes an encoder's folder.

texts → tokenizer → pieces on disk → blocks → learned from / held out → loop → encoder folder
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from litotes.core.machine import choose_device
from litotes.core.progress import Watch, ignore_progress
from litotes.core.registry import check_options
from litotes.core.storage import remove_folder, write_json
from litotes.core.text import one_line
from litotes.encoder.attention import WEIGHTINGS
from litotes.encoder.tokenizer import PieceTokenizer
from litotes.training.checkpoints import Checkpoints
from litotes.training.epoch_loop import RunContext, derive_seed
from litotes.training.pretraining.blocks import Blocks, PairReader, Reader, TextReader, make_blocks
from litotes.training.pretraining.language_model import LanguageModel
from litotes.training.pretraining.loop import PretrainLoop, read_masked
from litotes.training.pretraining.masking import Masker
from litotes.training.pretraining.perplexity import HeldOut
from litotes.training.pretraining.piece_store import TOKENIZER, open_store, store_key, write_store
from litotes.training.pretraining.recipe import PretrainRecipe
from litotes.training.pretraining.run_folder import (
    SCORES,
    TEXTS,
    check_texts,
    find_finished,
    has_texts,
    save_encoder,
)
from litotes.training.pretraining.sources import Texts
from litotes.training.pretraining.start import Start, read_tokenizer
from litotes.training.processes import hold_folder, join_processes


@dataclass(frozen=True)
class PretrainRun:
    """What a finished pretraining leaves behind. scores: what `scores.json` holds."""

    folder: Path
    scores: Mapping[str, Any]

    def __repr__(self) -> str:
        return one_line(self, folder=str(self.folder), perplexity=self.scores["perplexity"])

    @property
    def notes(self) -> Sequence[str]:
        return self.scores["notes"]


def pretrain(
    recipe: PretrainRecipe,
    out: Path,
    *,
    device: str | None = None,
    resume: bool = False,
    watch: Watch = ignore_progress,
) -> PretrainRun:
    """Pretrains one encoder into the folder `out`; with `resume` goes on where a stopped run was.

    A run that is resumed reads the texts as they were when it began.
    """
    model = recipe.model
    check_options(WEIGHTINGS, model.weighting, "weighting", model.weighting_options)
    start, texts, chosen = Start(recipe), Texts(recipe.data), choose_device(device)
    with join_processes(chosen.type) as processes, hold_folder(out, processes):
        finished = find_finished(out, recipe.key(), resume=resume)
        if finished is None:
            if processes.is_first and not (resume and has_texts(out)):
                _write_texts(start, texts, out, watch)
            processes.wait()
            key = f"{recipe.key()}-{store_key(out / TEXTS)}"
            finished = _run(start, RunContext(chosen, out, key, processes, watch), resume=resume)
        if processes.is_first:
            _clear(out)
    return PretrainRun(out, finished)


def _write_texts(start: Start, texts: Texts, out: Path, watch: Watch) -> None:
    """The pieces of all texts, on disk."""
    if (out / TEXTS).exists():  # of a run that was killed
        remove_folder(out / TEXTS)
    write_store(out / TEXTS, texts, start.choose_tokenizer(texts, watch), watch=watch)
    write_json(out / "recipe.json", start.recipe.model_dump(mode="json"))


def _run(start: Start, context: RunContext, *, resume: bool) -> dict[str, Any]:
    recipe, folder = start.recipe, context.folder
    model, notes = start.make_model(folder / TEXTS / TOKENIZER)
    model.to(context.device)
    tokenizer = read_tokenizer(folder / TEXTS / TOKENIZER, recipe, model.encoder.spec)
    store = open_store(folder / TEXTS)
    blocks = make_blocks(
        store,
        tokenizer.max_pieces - len(tokenizer.frame(pair=recipe.objective.next_sentence)),
        join_lines=recipe.data.join_lines,
    )
    learned, held = blocks.hold_out(recipe.data.held_out)
    masker = Masker(tokenizer, recipe.objective)
    held_out = _held_out(recipe, learned, held, masker, tokenizer)
    reader = _reader(recipe, learned, tokenizer)
    loop = PretrainLoop(model, reader, masker, held_out, recipe, context=context)
    if resume:
        check_texts(folder, context.key)
        loop.resume()
    context.processes.wait()
    loop.measure_start()
    state = loop.run()
    scores = held_out.score(held_out.measure(model)).as_json() | {
        "history": state.history,
        "texts": {"learned_from": len(learned), "held_out": len(held)},
        "pieces": {"learned_from": learned.n_pieces, "held_out": held.n_pieces},
        "notes": [*store.notes, *notes, *_notes(model)],
        "key": recipe.key(),
    }
    if context.processes.is_first:
        _save(model, tokenizer, scores, folder)
    context.processes.wait()
    return scores


def _reader(recipe: PretrainRecipe, blocks: Blocks, tokenizer: PieceTokenizer) -> Reader:
    single = tokenizer.frame(pair=False)
    if not recipe.objective.next_sentence:
        return TextReader(blocks, single)
    pair = tokenizer.frame(pair=True)
    return PairReader(blocks, pair, single, tokenizer.max_pieces - len(pair))


def _held_out(
    recipe: PretrainRecipe,
    learned: Blocks,
    held: Blocks,
    masker: Masker,
    tokenizer: PieceTokenizer,
) -> HeldOut:
    """The same texts with the same pieces to guess, for all of the run."""
    reader = _reader(recipe, held, tokenizer)
    seed = derive_seed(recipe.seed, "held out")
    masked = read_masked(reader, masker, range(len(held)), seed=seed)
    return HeldOut(masked, learned.count_pieces(tokenizer.n_vocabulary))


def _notes(model: LanguageModel) -> list[str]:
    spec = model.encoder.spec
    if spec.is_plain:
        return []
    return [
        f"Attention was computed by {spec.weighting}: set model.weighting = {spec.weighting!r} in"
        " `litotes train` too. transformers knows softmax alone and would compute something else."
    ]


def _save(
    model: LanguageModel, tokenizer: PieceTokenizer, scores: Mapping[str, Any], folder: Path
) -> None:
    """scores.json is written last: with it the folder is whole."""
    save_encoder(model, tokenizer, folder)
    write_json(folder / SCORES, scores)


def _clear(folder: Path) -> None:
    """Removes what only an unfinished run needs."""
    Checkpoints(folder / "checkpoints", key="").clear()
    if (folder / TEXTS).exists():
        remove_folder(folder / TEXTS)
