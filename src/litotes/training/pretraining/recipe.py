"""A pretraining as data: a TOML file, changed by `--set a.b=c`, checked before anything starts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from litotes.core.errors import UserError
from litotes.training.recipe import (
    Options,
    Where,
    check_recipe,
    deciding_settings,
    key_of,
    read_changed,
)
from litotes.training.settings import TrainingSettings

TRAINED = "trained"
"""In place of an encoder's name: a tokenizer that is learned from the texts."""

_FROZEN = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class TextSettings(BaseModel):
    """The `[data]` table: which texts."""

    model_config = _FROZEN

    source: str | list[str] = Field(
        description=(
            "one or several of: FILE (.txt, .jsonl, .csv, .tsv, .parquet; FILE?text=COLUMN), or"
            " NAME[:PATH][?option=value], see `litotes list sources`"
        )
    )
    where: Where = Where()
    join_lines: bool = Field(
        False,
        description=(
            "lines of a document are read together, as many as fit; a blank line of a .txt, or"
            " the end of a row, ends a document"
        ),
    )
    held_out: float = Field(
        0.05, gt=0, lt=0.5, description="share of the texts kept apart to measure perplexity on"
    )

    @property
    def sources(self) -> tuple[str, ...]:
        return (self.source,) if isinstance(self.source, str) else tuple(self.source)


class ScratchSettings(BaseModel):
    """The `[model.scratch]` table: a BERT of random weights in place of a named encoder."""

    model_config = _FROZEN

    n_layers: int = Field(4, ge=1, le=1000)
    width: int = Field(256, ge=1, le=65_536)
    n_attention_heads: int = Field(4, ge=1, le=1024)
    inner_width: int | None = Field(None, ge=1, description="None: four times the width")
    n_positions: int = Field(512, ge=8, description="the longest text, in pieces")
    dropout: float = Field(0.1, ge=0, lt=1)
    tokenizer: str = Field(
        TRAINED, description="trained: WordPiece learned from the texts; or that of an encoder"
    )
    n_vocabulary: int = Field(8192, ge=64, description="pieces of a trained tokenizer")
    lower_case: bool = Field(True, description="whether a trained tokenizer ignores case")


class LanguageModelSettings(BaseModel):
    """The `[model]` table."""

    model_config = _FROZEN

    encoder: str | None = Field(
        None,
        description=(
            "where to go on from: a named encoder, a folder, or OWNER/NAME@REVISION; None:"
            " minilm, unless there is [model.scratch]"
        ),
    )
    scratch: ScratchSettings | None = None
    weighting: str = Field(
        "softmax", description="how affinities become weights, see `litotes list weightings`"
    )
    weighting_options: Options = Field({}, description='for example {alpha = "learned"}')
    max_pieces: int | None = Field(None, description="None: what the encoder can read, at most 512")


class ObjectiveSettings(BaseModel):
    """The `[objective]` table: what is to be guessed."""

    model_config = _FROZEN

    share: float = Field(0.15, gt=0, lt=1, description="of the pieces that are to be guessed")
    masked: float = Field(0.8, ge=0, le=1, description="of these, replaced by the mask")
    random: float = Field(0.1, ge=0, le=1, description="of these, replaced by any piece")
    whole_words: bool = Field(False, description="all pieces of a word are chosen, or none")
    next_sentence: bool = Field(
        False, description="also: does the second half follow the first? needs data.join_lines"
    )


class PretrainSettings(BaseModel):
    """The `[training]` table; its names are those of `litotes train`."""

    model_config = _FROZEN

    epochs: int = Field(3, ge=1, description="passes over the texts")
    steps: int | None = Field(None, ge=1, description="None: as many as the epochs have")
    batch_texts: int = Field(32, ge=1, description="texts a step")
    reports: int = Field(10, ge=1, description="how often held-out perplexity is measured")
    optimizer: Literal["adamw", "adam"] = "adamw"
    learning_rate: float = Field(1e-4, gt=0)
    weight_decay: float = Field(0.01, ge=0, description="not applied to biases and norms")
    schedule: Literal["linear", "constant"] = Field(
        "linear", description="after the warm-up: down to 0, or level"
    )
    warmup_share: float = Field(
        0.1, ge=0, lt=1, description="share of the steps in which the learning rate rises"
    )
    max_gradient_norm: float = Field(1.0, ge=0, description="0: no limit")
    precision: Literal["auto", "float32", "bfloat16"] = Field(
        "auto", description="auto: bfloat16 on CUDA, float32 elsewhere"
    )
    pieces_at_once: int | None = Field(
        None,
        ge=1,
        description=(
            "a step's texts are computed in parts of at most so many pieces, which takes less"
            " memory; None: together"
        ),
    )
    checkpoint_seconds: float = Field(
        120.0, ge=0, description="how much work a crash may cost at most"
    )
    tracker: Literal["none", "tensorboard", "mlflow"] = "none"

    def as_training(self) -> TrainingSettings:
        """What the optimizer, the schedule and the loop of a classifier read, with these values."""
        shared = set(TrainingSettings.model_fields)
        return TrainingSettings.model_validate(self.model_dump(include=shared))


class PretrainRecipe(BaseModel):
    """All that determines a pretraining."""

    model_config = _FROZEN

    seed: int = Field(0, ge=0, lt=2**32)
    data: TextSettings
    model: LanguageModelSettings = LanguageModelSettings()
    objective: ObjectiveSettings = ObjectiveSettings()
    training: PretrainSettings = PretrainSettings()

    def key(self) -> str:
        """A hash of everything that can change the result."""
        return key_of(deciding_settings(self))


def read_recipe(file: Path, *, changes: Sequence[str] = ()) -> PretrainRecipe:
    """Reads a recipe file (.toml, or the recipe.json of a run) and applies `a.b=c` changes."""
    advice = (
        "An example is recipes/pretrain.toml; `litotes list pretraining` names all that can be set."
    )
    return recipe_of(read_changed(file, changes, advice=advice), str(file))


def recipe_of(content: dict[str, Any], where: str) -> PretrainRecipe:
    """The checked recipe; `where` is named when it is wrong."""
    recipe = check_recipe(PretrainRecipe, {"data": {}} | content, where)
    problem = _contradiction(recipe)
    if problem is not None:
        raise UserError(f"{where}: {problem}")
    return recipe


def _contradiction(recipe: PretrainRecipe) -> str | None:
    """Settings that do not go together, in words."""
    objective, model = recipe.objective, recipe.model
    if objective.masked + objective.random > 1:
        return "objective.masked and objective.random are more than 1 together. Lower one."
    if objective.next_sentence and not recipe.data.join_lines:
        return (
            "objective.next_sentence needs lines that follow one another: set data.join_lines ="
            " true."
        )
    if model.scratch is None:
        return None
    if model.encoder is not None:
        return (
            "model.encoder goes on from an encoder and [model.scratch] starts a new one: leave one"
            " of them out."
        )
    if model.scratch.width % model.scratch.n_attention_heads:
        return (
            f"model.scratch.width = {model.scratch.width} is not a multiple of"
            f" {model.scratch.n_attention_heads} attention heads. Change one of them."
        )
    return None
