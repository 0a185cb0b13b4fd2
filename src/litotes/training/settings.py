"""How a classifier is trained, as data."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from litotes.data.corpus import Axis


class TrainingSettings(BaseModel):
    """The `[training]` table of a recipe.

    The defaults are ours; the paper's are in `recipes/paper_*.toml`.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    epochs: int = Field(8, ge=1, description="passes over the training texts, at most")
    batch_texts: int = Field(16, ge=1, description="texts a step")
    optimizer: Literal["adamw", "adam"] = "adamw"
    learning_rate: float = Field(5e-5, gt=0)
    head_learning_rate: float | None = Field(
        None, gt=0, description="for the heads alone; None: the same as the encoder's"
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
    class_weights: bool = Field(True, description="weigh classes by their inverse frequency")
    balancing: str = Field(
        "sum", description="how several tasks share a step, see `litotes list balancings`"
    )
    groups: Literal["none", "group_dro"] = Field(
        "none", description="group_dro: groups that do badly count more"
    )
    group_by: Axis = Field("variety", description="what a group is, for group_dro and worst_group")
    group_rate: float = Field(0.01, gt=0, description="how fast group_dro moves its weights")
    held_out: float = Field(
        0.1,
        ge=0,
        lt=0.9,
        description=(
            "share of train kept apart to choose the best epoch; 0: the last epoch is taken"
        ),
    )
    reserved: float = Field(
        0.0,
        ge=0,
        lt=0.9,
        description="share of train that training never sees: `litotes prune` judges by it",
    )
    split_seed: int | None = Field(
        None,
        ge=0,
        description=(
            "which texts are held out and reserved, where runs of several seeds shall keep the same"
            " ones apart; None: the seed says it"
        ),
    )
    selection: Literal["mean", "worst_group"] = Field(
        "mean", description="what makes an epoch the best: all texts, or the worst group"
    )
    calibration: Literal["full", "temperature", "none"] = Field(
        "full",
        description=(
            "fitted on the held-out texts: temperature and threshold, temperature alone, or nothing"
        ),
    )
    patience: int = Field(
        3, ge=1, description="epochs without a better held-out score before training stops"
    )
    freeze_below: int = Field(
        0,
        ge=0,
        description=(
            "layers under this one stay as they are; what they compute is kept, not computed anew"
        ),
    )
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
    recompute_activations: bool = Field(
        False,
        description=(
            "what a layer computes is not kept for the backward pass but computed again: less"
            " memory, about a third more time"
        ),
    )
    checkpoint_seconds: float = Field(
        120.0, ge=0, description="how much work a crash may cost at most"
    )
    tracker: Literal["none", "tensorboard", "mlflow"] = "none"
