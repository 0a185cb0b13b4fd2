"""A training of a model of words as data: a TOML file with `kind = "tagging"` or `"span"`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from litotes.core.errors import UserError
from litotes.core.text import one_line
from litotes.training.recipe import (
    Options,
    changed_settings,
    check_recipe,
    deciding_settings,
    key_of,
    read_changed,
)
from litotes.training.settings import TrainingSettings

_FROZEN = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class WordDataSettings(BaseModel):
    """The `[data]` table."""

    model_config = _FROZEN

    source: str = Field(
        description="NAME:PATH[?option=value], a source of words of `litotes list sources`"
    )
    leaks: Literal["drop", "keep"] = Field(
        "drop", description="training texts that also sit in another split: dropped or kept"
    )


class WordModelSettings(BaseModel):
    """The `[model]` table."""

    model_config = _FROZEN

    encoder: str = Field(
        "minilm", description="a name of `litotes encoders list`, a folder, or OWNER/NAME@REVISION"
    )
    weighting: str = Field(
        "softmax", description="how affinities become weights, see `litotes list weightings`"
    )
    weighting_options: Options = Field({}, description='for example {alpha = "learned"}')
    pruning: str = Field(
        "none",
        description=(
            "which pieces go on, see `litotes list prunings`; those that leave are restored at the"
            " end, so that every word has its answer"
        ),
    )
    pruning_options: Options = Field({}, description="for example {schedule = [1.0, 0.8, 0.5]}")
    dropout: float = Field(0.1, ge=0, lt=1, description="before the output of the head")
    max_pieces: int | None = Field(None, description="None: what the encoder can read, at most 512")

    def attention_choices(self) -> dict[str, Any]:
        """The weighting and the pruning, which restores what it removes."""
        options = self.pruning_options
        if self.pruning != "none":
            options = {"restore": True, **options}
        return {
            "weighting": self.weighting,
            "weighting_options": self.weighting_options,
            "pruning": self.pruning,
            "pruning_options": options,
        }


class WordTrainingSettings(BaseModel):
    """The `[training]` table; its names are those of a classifier's."""

    model_config = _FROZEN

    epochs: int = Field(8, ge=1, description="passes over the training texts, at most")
    batch_texts: int = Field(16, ge=1, description="texts a step")
    optimizer: Literal["adamw", "adam"] = "adamw"
    learning_rate: float = Field(1e-4, gt=0)
    head_learning_rate: float | None = Field(
        1e-3, gt=0, description="for the head alone; None: the same as the encoder's"
    )
    layer_decay: float = Field(
        1.0,
        gt=0,
        le=1,
        description="each layer's rate is that of the layer above times this; embeddings come last",
    )
    weighting_learning_rate: float = Field(
        5e-3, gt=0, description="for what a weighting learns, such as the alpha of entmax"
    )
    weight_decay: float = Field(0.01, ge=0, description="not applied to biases and norms")
    schedule: Literal["linear", "constant"] = Field(
        "linear", description="after the warm-up: down to 0, or level"
    )
    warmup_share: float = Field(
        0.1, ge=0, lt=1, description="share of the steps in which the learning rate rises"
    )
    max_gradient_norm: float = Field(1.0, ge=0, description="0: no limit")
    class_weights: bool = Field(
        False, description="weigh labels of words by their inverse frequency; tagging alone"
    )
    held_out: float = Field(
        0.1,
        ge=0,
        lt=0.9,
        description=(
            "share of train kept apart to choose the best epoch; 0: the last epoch is taken"
        ),
    )
    patience: int = Field(
        3, ge=1, description="epochs without a better held-out score before training stops"
    )
    precision: Literal["auto", "float32", "bfloat16"] = Field(
        "auto", description="auto: bfloat16 on CUDA, float32 elsewhere"
    )
    checkpoint_seconds: float = Field(
        120.0, ge=0, description="how much work a crash may cost at most"
    )
    tracker: Literal["none", "tensorboard", "mlflow"] = "none"

    def as_training(self) -> TrainingSettings:
        """What the optimizer, the schedule and the loop of a classifier read, with these values."""
        return TrainingSettings.model_validate(self.model_dump())


class WordRecipe(BaseModel):
    """All that determines a run."""

    model_config = _FROZEN

    kind: Literal["tagging", "span"] = Field(
        description="tagging: a label for every word; span: where a stretch begins and ends"
    )
    seed: int = Field(0, ge=0, lt=2**32)
    data: WordDataSettings
    model: WordModelSettings = WordModelSettings()
    training: WordTrainingSettings = WordTrainingSettings()

    def __repr__(self) -> str:
        return one_line(self, **self.model_dump(exclude_defaults=True))

    def key(self) -> str:
        """A hash of everything that can change the result."""
        return key_of(deciding_settings(self))

    def changed(self, **paths: Any) -> WordRecipe:
        """A copy with values at dotted paths replaced, dots written as two underscores."""
        return recipe_of(changed_settings(self, paths), "recipe")


def read_recipe(file: Path, *, changes: Sequence[str] = ()) -> WordRecipe:
    """Reads a recipe file (.toml, or the recipe.json of a run) and applies `a.b=c` changes."""
    advice = (
        "Examples are recipes/tagging.toml and recipes/span.toml; `litotes list tagging` names all"
        " that can be set."
    )
    return recipe_of(read_changed(file, changes, advice=advice), str(file))


def recipe_of(content: dict[str, Any], where: str) -> WordRecipe:
    """The checked recipe; `where` is named when it is wrong."""
    recipe = check_recipe(WordRecipe, {"data": {}} | content, where)
    if recipe.kind == "span" and recipe.training.class_weights:
        raise UserError(f"{where}: class_weights is about tags; leave it out of a span's recipe.")
    return recipe
