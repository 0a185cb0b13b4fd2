"""The training of a translation model as data: a TOML file with `kind = "translation"`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from litotes.core.errors import UserError
from litotes.training.recipe import (
    Options,
    TrainingSettings,
    check_recipe,
    deciding_settings,
    key_of,
    read_changed,
)

KIND = "translation"

_FROZEN = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class PairSettings(BaseModel):
    """The `[data]` table: which parallel texts."""

    model_config = _FROZEN

    source: str = Field(
        description="NAME:PATH[?option=value], see `litotes list parallel`: multi30k, sign, tsv …"
    )


class TranslationModelSettings(BaseModel):
    """The `[model]` table."""

    model_config = _FROZEN

    encoder: str | None = Field(
        None,
        description=(
            "where to begin: a name of `litotes encoders list`, a folder, or OWNER/NAME@REVISION;"
            " None: from scratch, with a vocabulary learned from the texts"
        ),
    )
    n_layers: int = Field(4, ge=1, le=1000, description="of the decoder, and of a new encoder")
    width: int | None = Field(
        None, ge=2, le=65_536, description="None: that of the encoder, 256 from scratch"
    )
    n_attention_heads: int = Field(4, ge=1, le=1024)
    inner_width: int | None = Field(None, ge=1, description="None: twice the width")
    n_vocabulary: int = Field(8000, ge=260, description="pieces of a vocabulary that is learned")
    lower_case: bool = Field(False, description="whether a vocabulary that is learned ignores case")
    positions: Literal["sinusoidal", "learned"] = "sinusoidal"
    norm_first: bool = Field(True, description="norms before attention and feed-forward, not after")
    tied: Literal["all", "target", "none"] = Field(
        "all", description="tables of pieces that are one: all three, input and output, or none"
    )
    weighting: str = Field(
        "softmax", description="of every attention, see `litotes list weightings`"
    )
    weighting_options: Options = Field({}, description='for example {alpha = "learned"}')
    dropout: float = Field(0.1, ge=0, lt=1)
    attention_dropout: float = Field(0.1, ge=0, lt=1)
    max_pieces: int = Field(256, ge=4, description="the longest text of either side, in pieces")


class TranslationTraining(BaseModel):
    """The `[training]` table."""

    model_config = _FROZEN

    epochs: int = Field(30, ge=1, description="passes over the pairs")
    batch_pieces: int = Field(8192, ge=16, description="pieces a step, both sides together")
    learning_rate: float = Field(2e-3, gt=0, description="the highest, at the end of the warm-up")
    warmup_steps: int = Field(
        1000, ge=1, description="in which the rate rises; after them it falls as 1 / √step"
    )
    weighting_learning_rate: float | None = Field(
        None, gt=0, description="for what a weighting learns; None: the same"
    )
    label_smoothing: float = Field(0.1, ge=0, lt=1)
    weight_decay: float = Field(0.0, ge=0, description="not applied to biases and norms")
    max_gradient_norm: float = Field(1.0, ge=0, description="0: no limit")
    averaged: int = Field(
        5, ge=1, description="the weights are the mean of those after the last so many epochs"
    )
    precision: Literal["auto", "float32", "tf32", "bfloat16"] = Field(
        "auto", description="auto: bfloat16 on CUDA, float32 elsewhere"
    )
    checkpoint_seconds: float = Field(
        120.0, ge=0, description="how much work a crash may cost at most"
    )
    tracker: Literal["none", "tensorboard", "mlflow"] = "none"

    def as_training(self) -> TrainingSettings:
        """What the loop of a classifier reads, with these values."""
        shared = set(TrainingSettings.model_fields)
        values = self.model_dump(include=shared, exclude_none=True)
        if self.precision == "tf32":
            values["precision"] = "float32"
        return TrainingSettings.model_validate(values)


class SearchSettings(BaseModel):
    """The `[search]` table: how texts are found."""

    model_config = _FROZEN

    beams: int = Field(5, ge=1, le=1000, description="1: the best piece at every step")
    length_penalty: float = Field(1.0, ge=0, le=10, description="0 favours short texts")
    ratio: float = Field(2.0, gt=0, le=100, description="target pieces per source piece, at most")


def search_of(content: Mapping[str, Any], where: str) -> SearchSettings:
    """The checked settings of a search; `where` is named when they are wrong."""
    return check_recipe(SearchSettings, content, where)


class TranslationRecipe(BaseModel):
    """All that determines a run."""

    model_config = _FROZEN

    kind: Literal["translation"] = "translation"
    seed: int = Field(0, ge=0, lt=2**32)
    data: PairSettings
    model: TranslationModelSettings = TranslationModelSettings()
    training: TranslationTraining = TranslationTraining()
    search: SearchSettings = SearchSettings()

    def key(self) -> str:
        """A hash of everything that can change the result."""
        return key_of(deciding_settings(self))


def read_translation_recipe(file: Path, *, changes: Sequence[str] = ()) -> TranslationRecipe:
    """Reads a recipe file (.toml, or the recipe.json of a run) and applies `a.b=c` changes."""
    content = read_changed(file, changes, advice="An example is recipes/multi30k.toml.")
    return translation_recipe_of(content, str(file))


def translation_recipe_of(content: dict[str, Any], where: str) -> TranslationRecipe:
    """The checked recipe; `where` is named when it is wrong."""
    recipe = check_recipe(TranslationRecipe, {"data": {}} | content, where)
    model = recipe.model
    if model.width is not None and model.width % model.n_attention_heads:
        raise UserError(
            f"{where}: model.width = {model.width} is not a multiple of {model.n_attention_heads}"
            " attention heads. Change one of them."
        )
    return recipe
