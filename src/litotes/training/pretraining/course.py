"""Masked-language modelling on unlabelled text: an encoder goes on learning, or starts new.

texts → tokenizer → pieces on disk → blocks → learned from / held out → trainer → encoder folder

Texts are masked anew at every step, perplexity is measured now and then. Where a classifier has
epochs, here are stretches of equal length, each ending with a measurement.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from safetensors.torch import save as to_bytes
from torch import Tensor
from torch.nn import functional

from litotes.core.errors import UserError
from litotes.core.figures import GAP, hide_frame, new_figure
from litotes.core.json_text import read_as
from litotes.core.progress import Watch
from litotes.core.storage import (
    is_complete,
    remove_folder,
    write_bytes,
    write_json,
    write_text,
)
from litotes.core.values import MISSING
from litotes.encoder import pretrained
from litotes.encoder.encoder import Encoder
from litotes.encoder.families import EncoderSpec, config_from_spec
from litotes.encoder.pretrained import (
    choose_max_pieces,
    find_encoder,
    load_tokenizer,
    read_tensors,
    tokenizer_config,
    weight_files,
)
from litotes.encoder.tokenizer import PieceTokenizer
from litotes.training.checkpoints import Checkpoints, RunState
from litotes.training.course import Course, Run
from litotes.training.objective import Objective, RunContext, derive_seed, shuffled
from litotes.training.pretraining.language_model import (
    HeldOut,
    LanguageModel,
    draw_weights,
    family_tensors,
    load_heads,
)
from litotes.training.pretraining.masking import Reader, find_first, find_mask
from litotes.training.pretraining.texts import (
    TOKENIZER,
    Blocks,
    Texts,
    make_blocks,
    open_store,
    store_key,
    write_store,
)
from litotes.training.recipe import TRAINED, PretrainRecipe
from litotes.training.vocabularies import train_wordpiece

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CURVE = "#0072B2"  # from the palette of Okabe and Ito
TEXTS, SCORES = "texts", "scores.json"
DEFAULT = "minilm"
_PADDINGS = ("[PAD]", "<pad>")
_BETWEEN_REPORTS = 1000


class MaskedLanguage(Objective):
    """A language model guesses pieces of what `reader` reads; it is measured on `held_out`."""

    judges_start = True

    def __init__(
        self,
        model: LanguageModel,
        reader: Reader,
        held_out: HeldOut,
        recipe: PretrainRecipe,
        context: RunContext,
    ) -> None:
        self.language_model, self.reader, self.held_out = model, reader, held_out
        settings = recipe.training
        self.steps_a_pass = -(-len(reader.blocks) // settings.batch_texts)
        n_steps = settings.steps or self.steps_a_pass * settings.epochs
        super().__init__(
            model,
            model.encoder,
            settings,
            context,
            seed=recipe.seed,
            n_steps=n_steps,
            n_epochs=min(settings.reports, n_steps),
        )

    def batches(self, epoch: int) -> list[list[int]]:
        """The blocks of each batch of a stretch, which may begin and end within a pass."""
        first, last = (number * self.n_steps // self.n_epochs for number in (epoch, epoch + 1))
        begun, size = first // self.steps_a_pass, self.settings.batch_texts
        passes = [
            shuffled(len(self.reader.blocks), size, derive_seed(self.seed, "order", number))
            for number in range(begun, -(-last // self.steps_a_pass))
        ]
        start = begun * self.steps_a_pass
        return list(chain.from_iterable(passes))[first - start : last - start]

    def losses(self, batch: Sequence[int], step: int) -> Iterator[Sequence[Tensor]]:
        """The mean over the batch's chosen pieces, and that over its pairs."""
        # every process draws all, so that all agree on what is chosen
        texts = self.reader.read(batch, seed=derive_seed(self.seed, "mask", step))
        n_chosen = max(len(texts.targets), 1)
        n_pairs = max(int((texts.follows != MISSING).sum()), 1)
        own, weight = self.share(range(len(texts.lengths)))
        for part in self.divide(own, texts.lengths):
            masked = texts.pack(part, self.device)
            with self.autocast():
                pieces, follows = self.language_model(masked)
            asked = [(pieces, masked.targets, n_chosen)]
            if follows is not None:
                asked.append((follows, masked.follows, n_pairs))
            losses = [
                functional.cross_entropy(
                    logits.float(), wanted, ignore_index=MISSING, reduction="sum"
                )
                / n
                for logits, wanted, n in asked
            ]
            yield [weight * sum(losses[1:], losses[0])]

    def judge(self, state: RunState) -> dict[str, float]:
        self.set_progress(state.step / self.n_steps)
        return self.held_out.measure(self.language_model)[0]

    def epoch_of(self, state: RunState) -> int:
        return (state.step - 1) // self.steps_a_pass + 1

    def milestone(self, state: RunState) -> str:
        return f"step {state.step} of {self.n_steps}"

    def describe(self, line: Mapping[str, Any]) -> str:
        return f"held-out perplexity {line['perplexity']:.2f}"


class PretrainCourse(Course):
    """From a `PretrainRecipe` to an encoder's folder. What cannot begin is refused before any text
    is read; a run that is resumed reads the texts as they were when it began.
    """

    last_file = SCORES
    recipe: PretrainRecipe
    model: LanguageModel
    tokenizer: PieceTokenizer

    def __init__(self, recipe: PretrainRecipe, **given: Any) -> None:
        super().__init__(recipe, **given)
        settings = recipe.model
        self.notes: list[str] = []
        if settings.scratch is None:
            self._load(settings.encoder or DEFAULT)
        else:
            choose_max_pieces(settings.max_pieces, settings.scratch.n_positions)
            if settings.scratch.tokenizer != TRAINED:
                find_mask(load_tokenizer(settings.scratch.tokenizer))
        self.texts = Texts(recipe.data)
        self.key = recipe.key()  # that of the texts is added when they have been read

    def _load(self, name: str) -> None:
        """The language model around an encoder that is there."""
        settings = self.recipe.model
        found = pretrained.load(
            name,
            max_pieces=settings.max_pieces,
            weighting=settings.weighting,
            weighting_options=settings.weighting_options,
        )
        find_mask(found.tokenizer)
        torch.manual_seed(self.recipe.seed)  # for an output layer that is new
        next_sentence = self.recipe.objective.next_sentence
        self.model = LanguageModel(found.encoder, next_sentence=next_sentence)
        self.tokenizer = found.tokenizer
        tensors: dict[str, Tensor] = {}
        for file in weight_files(find_encoder(name)[0]):
            tensors |= read_tensors(file)
        self.notes = load_heads(self.model, tensors, found.name)

    def owns(self, key: str) -> bool:
        return key.partition("-")[0] == self.recipe.key()

    def begin(self, context: RunContext) -> Objective:
        recipe, folder = self.recipe, context.folder / TEXTS
        self._write_texts(context)
        self._open(folder / TOKENIZER)
        store = open_store(folder)
        n_special = len(self.tokenizer.frame(pair=recipe.objective.next_sentence))
        room = self.tokenizer.max_pieces - n_special
        blocks = make_blocks(store, room, join_lines=recipe.data.join_lines)
        self.learned, self.held = blocks.hold_out(recipe.data.held_out)
        self.notes = [*store.notes, *self.notes]
        # the same texts with the same pieces to guess, for all of the run
        seed = derive_seed(recipe.seed, "held out")
        asked = self._reader(self.held).read(range(len(self.held)), seed=seed)
        self.held_out = HeldOut(asked, self.learned.count_pieces(self.tokenizer.n_vocabulary))
        return MaskedLanguage(
            self.model.to(context.device),
            self._reader(self.learned),
            self.held_out,
            recipe,
            context,
        )

    def _write_texts(self, context: RunContext) -> None:
        """Keeps the texts as pieces; those of a run that goes on must be those it began with."""
        folder = context.folder / TEXTS
        found = Checkpoints(context.folder / "checkpoints", key="").stored_key()
        # only the texts of a run that has a checkpoint are known to be of this recipe
        if context.processes.is_first and (found is None or not is_complete(folder)):
            if folder.exists():  # of a run that was killed
                remove_folder(folder)
            tokenizer = self._choose_tokenizer(context.watch)
            write_store(folder, self.texts, tokenizer, watch=context.watch)
        context.processes.wait()
        self.key = f"{self.recipe.key()}-{store_key(folder)}"
        if found is not None and found != self.key:
            raise UserError(
                f"{context.folder}: the texts are no longer those that the run began with, and its"
                " copy of them is damaged. Choose another --out."
            )

    def _choose_tokenizer(self, watch: Watch) -> PieceTokenizer:
        """Takes that of the encoder or of another, or learns one from the texts."""
        scratch = self.recipe.model.scratch
        if scratch is None:
            return self.tokenizer
        if scratch.tokenizer != TRAINED:
            return load_tokenizer(scratch.tokenizer)

        def read() -> Iterator[str]:
            for number, line in enumerate(self.texts):
                if number % _BETWEEN_REPORTS == 0:
                    watch("learning a tokenizer", number, number, "texts read")
                yield line.text

        content = train_wordpiece(
            read, n_vocabulary=scratch.n_vocabulary, lower_case=scratch.lower_case
        )
        file = Path("tokenizer.json")
        return PieceTokenizer(file, max_pieces=scratch.n_positions, content=content.encode())

    def _open(self, file: Path) -> None:
        """The model before its first step, and the run's tokenizer, cutting where it must."""
        recipe, scratch = self.recipe, self.recipe.model.scratch
        if scratch is not None:
            torch.manual_seed(recipe.seed)
            encoder = Encoder(
                scratch_spec(recipe, PieceTokenizer(file, max_pieces=scratch.n_positions))
            )
            draw_weights(encoder)
            self.model = LanguageModel(encoder, next_sentence=recipe.objective.next_sentence)
        most = choose_max_pieces(recipe.model.max_pieces, self.model.encoder.spec.max_pieces)
        self.tokenizer = PieceTokenizer(file, max_pieces=most)

    def _reader(self, blocks: Blocks) -> Reader:
        return Reader(blocks, self.tokenizer, self.recipe.objective)

    def test(self, state: RunState, context: RunContext) -> Run:
        spec, learned, held = self.model.encoder.spec, self.learned, self.held
        if not spec.is_plain:
            self.notes.append(
                f"Attention was computed by {spec.weighting}: set model.weighting ="
                f" {spec.weighting!r} in `litotes train` too. transformers knows softmax alone and"
                " would compute something else."
            )
        scores = self.held_out.score(self.model) | {
            "history": state.history,
            "texts": {"learned_from": len(learned), "held_out": len(held)},
            "pieces": {"learned_from": learned.n_pieces, "held_out": held.n_pieces},
            "notes": self.notes,
            "key": self.recipe.key(),
        }
        return Run(context.folder, (), scores, tuple(self.notes))

    def save(self, run: Run) -> None:
        """Writes what `litotes train` and `transformers` (AutoModel, AutoModelForMaskedLM) read."""
        folder, model, tokenizer = run.folder, self.model, self.tokenizer
        spec = model.encoder.spec
        config = config_from_spec(spec) | {"architectures": [model.architecture]}
        write_json(folder / "config.json", config)
        write_text(folder / "tokenizer.json", tokenizer.to_json())
        mask = tokenizer.piece_string(find_mask(tokenizer))
        described = tokenizer_config(tokenizer, spec) | {"mask_token": mask}
        write_json(folder / "tokenizer_config.json", described)
        weights = to_bytes(family_tensors(model), metadata={"format": "pt"})
        write_bytes(folder / "model.safetensors", weights)
        write_json(folder / SCORES, run.scores)

    def load(self, folder: Path) -> tuple[str, Run]:
        scores = read_as(folder / SCORES, dict[str, Any], advice="Choose another --out.")
        return str(scores.get("key")), Run(folder, (), scores, tuple(scores["notes"]))

    def clear(self, folder: Path) -> None:
        super().clear(folder)
        if (folder / TEXTS).exists():
            remove_folder(folder / TEXTS)


def scratch_spec(recipe: PretrainRecipe, tokenizer: PieceTokenizer) -> EncoderSpec:
    """A BERT of random weights."""
    scratch = recipe.model.scratch
    assert scratch is not None
    padding = find_first(tokenizer, _PADDINGS)
    if padding is None:
        raise UserError(
            f"The tokenizer of {scratch.tokenizer} has no {' or '.join(_PADDINGS)}. Choose another,"
            ' or model.scratch.tokenizer = "trained".'
        )
    same = {"width", "n_layers", "n_attention_heads", "n_positions", "dropout"}
    return EncoderSpec(
        family="bert",
        n_vocabulary=tokenizer.n_vocabulary,
        inner_width=scratch.inner_width or 4 * scratch.width,
        n_segments=2,
        attention_dropout=scratch.dropout,
        padding_piece=padding,
        weighting=recipe.model.weighting,
        weighting_options=recipe.model.weighting_options,
        **scratch.model_dump(include=same),
    )


def draw_curve(history: Sequence[Mapping[str, Any]], *, unigram: float) -> Figure:
    """Perplexity, on a logarithmic scale, against steps. unigram: drawn for comparison."""
    from matplotlib.ticker import LogLocator, NullFormatter

    picture = new_figure(6.4, 4.0)
    ax = picture.subplots()
    steps, values = ([line[key] for line in history] for key in ("step", "perplexity"))
    ax.axhline(unigram, color=GAP, linestyle="--", linewidth=1, label="by frequency alone")
    ax.plot(steps, values, "o-", color=CURVE, markersize=4, label="held out")
    ax.set_yscale("log")
    # a curve often stays within a power of ten, and an axis with one number says nothing
    ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 3, 5)))
    ax.yaxis.set_major_formatter(_number)
    ax.yaxis.set_minor_formatter(NullFormatter())
    ax.set_xlabel("step")
    ax.set_ylabel("perplexity of the chosen pieces")
    hide_frame(ax)
    ax.legend(frameon=False, fontsize=8)
    return picture


def _number(value: float, place: float | None = None) -> str:
    return f"{value:,.0f}" if value >= 10 else f"{value:g}"
