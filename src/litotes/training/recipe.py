"""A run as data: a TOML file, changed by `--set a.b=c`, checked before anything starts.

The tables of every objective stand here; what they share, once. Below each setting stands what
`litotes list` says about it.
"""

from __future__ import annotations

import hashlib
import json
import reprlib
import tomllib
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from litotes.core.errors import UserError
from litotes.core.json_text import from_json
from litotes.core.registry import pick, unknown_name
from litotes.core.text import is_utf8, one_line
from litotes.core.values import CLASSIFICATION
from litotes.data.corpus import Axis

Words = str | list[str] | None
Options = dict[str, bool | int | float | str | list[float]]
Count = Annotated[int, Field(ge=1)]
Positive = Annotated[float, Field(gt=0)]
NotNegative = Annotated[float, Field(ge=0)]
Share = Annotated[float, Field(ge=0, le=1)]
Part = Annotated[float, Field(ge=0, lt=1)]
HeldOut = Annotated[float, Field(ge=0, lt=0.9)]
Layers = Annotated[int, Field(ge=1, le=1000)]
Heads = Annotated[int, Field(ge=1, le=1024)]

TRAINED = "trained"
"""In place of an encoder's name: a tokenizer that is learned from the texts."""


class Table(BaseModel):
    """A table of settings: none that it does not know."""

    model_config = ConfigDict(frozen=True, allow_inf_nan=False, use_attribute_docstrings=True)

    @model_validator(mode="before")
    @classmethod
    def _know_all(cls, content: Any) -> Any:
        for name in content if isinstance(content, dict) else ():
            if name not in cls.model_fields:
                raise ValueError(unknown_name(name, cls.model_fields, "setting called"))
        return content

    @classmethod
    def of(cls, content: Any, where: str) -> Self:
        """The checked settings; `where` is named when they are wrong."""
        try:
            return cls.model_validate(content)
        except ValidationError as error:
            raise UserError(f"{where}: {first_problem(error)}") from error


class RunSettings(Table):
    """The settings of every `[training]` table."""

    epochs: Count = 8
    """passes over the training texts, at most"""
    learning_rate: Positive = 5e-5
    weight_decay: NotNegative = 0.01
    """not applied to biases and norms"""
    max_gradient_norm: NotNegative = 1.0
    """0: no limit"""
    precision: Literal["auto", "float32", "bfloat16"] = "auto"
    """auto: bfloat16 on CUDA, float32 elsewhere"""
    checkpoint_seconds: NotNegative = 120.0
    """how much work a crash may cost at most"""
    tracker: Literal["none", "tensorboard", "mlflow"] = "none"


class EncoderTraining(RunSettings):
    """The settings of `[training]` tables in which an encoder learns."""

    batch_texts: Count = 16
    """texts a step"""
    optimizer: Literal["adamw", "adam"] = "adamw"
    head_learning_rate: Positive | None = None
    """for the heads alone; None: the same as the encoder's"""
    layer_decay: Annotated[float, Field(gt=0, le=1)] = 1.0
    """each layer's rate is that of the layer above times this; embeddings come last"""
    weighting_learning_rate: Positive = 5e-3
    """for what a weighting learns, such as the alpha of entmax"""
    schedule: Literal["linear", "constant"] = "linear"
    """after the warm-up: down to 0, or level"""
    warmup_share: Part = 0.1
    """share of the steps in which the learning rate rises"""
    pieces_at_once: Count | None = None
    """a step's texts are computed in parts of at most so many pieces, which takes less memory;
    None: together"""


class JudgedTraining(EncoderTraining):
    """The settings of `[training]` tables in which held-out texts choose the best epoch."""

    held_out: HeldOut = 0.1
    """share of train kept apart to choose the best epoch; 0: the last epoch is taken"""
    patience: Count = 3
    """epochs without a better held-out score before training stops"""


class AttentionSettings(Table):
    """The settings of every `[model]` table: how attention works, and how much is read."""

    weighting: str = "softmax"
    """how affinities become weights, see `litotes list weightings`"""
    weighting_options: Options = {}
    """for example {alpha = "learned"}"""
    max_pieces: int | None = None
    """None: what the encoder can read, at most 512"""


class PrunedSettings(AttentionSettings):
    """The settings of `[model]` tables whose encoder may be pruned."""

    encoder: str = "minilm"
    """a name of `litotes encoders list`, a folder, or OWNER/NAME@REVISION"""
    pruning: str = "none"
    """which pieces and attention heads go on, see `litotes list prunings`"""
    pruning_options: Options = {}
    """for example {schedule = "geometric", final = 0.3}"""
    dropout: Part = 0.1
    """before the output of the head"""

    def attention_choices(self) -> dict[str, Any]:
        """The weighting and the pruning, with their options, and how much is read."""
        chosen = {"weighting", "weighting_options", "pruning", "pruning_options", "max_pieces"}
        return self.model_dump(include=chosen)


class BaseRecipe(Table):
    """The base of every recipe: all that determines a run."""

    seed: int = Field(0, ge=0, lt=2**32)
    kind: str

    def __repr__(self) -> str:
        return one_line(self, **self.model_dump(exclude_defaults=True))

    @model_validator(mode="after")
    def _can_be_written(self) -> Self:
        if not is_utf8(json.dumps(self.model_dump(), ensure_ascii=False)):
            raise ValueError("A setting is not UTF-8. Rename the file or folder it names.")
        return self

    def key(self) -> str:
        """A short hash of everything that can change the result."""
        content = self.model_dump(
            mode="json", exclude={"training": {"checkpoint_seconds", "tracker"}}
        )
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]

    def changed(self, **paths: Any) -> Self:
        """A copy with values at dotted paths replaced (dots written as two underscores:
        `data__where__variety="en-AU"`).
        """
        content = self.model_dump()
        for path, value in paths.items():
            put(content, path.split("__"), value, where=path)
        return self.of(content, "recipe")

    @classmethod
    def read(cls, file: Path, *, changes: Sequence[str] = ()) -> Self:
        """Reads a recipe file (.toml, or the recipe.json of a run) and applies `a.b=c` changes."""
        return cls.of(read_settings(file, changes), str(file))


# Classification


class Where(Table):
    """The `[data.where]` table: which texts."""

    variety: Words = None
    source: Words = None


class DataSettings(Table):
    """The `[data]` table: which corpus, which tasks, which part of it."""

    source: str = "sampler"
    """NAME[:PATH][?option=value], see `litotes list sources`"""
    tasks: list[str] | None = None
    """None: all the corpus has"""
    where: Where = Where()
    labels: dict[str, dict[str, str]] = {}
    """label words to replace, by task: {sentiment = {neutral = ""}}; "" takes the label away"""
    avoid: list[str] = []
    """sources whose test and valid texts must not be learned from, in whatever spelling"""
    rewrites: list[str] = []
    """features of varieties to train with, see `litotes list rewrites`; []: none"""
    rewrite_share: Annotated[float, Field(gt=0, le=1)] = 0.5
    """share of the training texts that are learned from as `rewrites` change them"""
    leaks: Literal["drop", "keep", "join"] = "drop"
    """training texts that also sit in another split, under whatever task: dropped, kept, or given
    the labels from there"""


class ModelSettings(PrunedSettings):
    """The `[model]` table."""

    head: str = "mean"
    """see `litotes list heads`"""
    separate: bool = False
    """a model of its own for every task instead of one for all"""


class TrainingSettings(JudgedTraining):
    """The `[training]` table of a recipe.

    The defaults are ours; the paper's are in `recipes/paper_*.toml`.
    """

    class_weights: bool = True
    """weigh classes by their inverse frequency"""
    balancing: str = "sum"
    """how several tasks share a step, see `litotes list balancings`"""
    groups: Literal["none", "group_dro"] = "none"
    """group_dro: groups that do badly count more"""
    group_by: Axis = "variety"
    """what a group is, for group_dro and worst_group"""
    group_rate: Positive = 0.01
    """how fast group_dro moves its weights"""
    reserved: HeldOut = 0.0
    """share of train that training never sees: `litotes prune` judges by it"""
    split_seed: Annotated[int, Field(ge=0)] | None = None
    """which texts are held out and reserved, where runs of several seeds shall keep the same ones
    apart; None: the seed says it"""
    selection: Literal["mean", "worst_group"] = "mean"
    """what makes an epoch the best: all texts, or the worst group"""
    calibration: Literal["full", "temperature", "none"] = "full"
    """fitted on the held-out texts: temperature and threshold, temperature alone, or nothing"""
    freeze_below: Annotated[int, Field(ge=0)] = 0
    """layers under this one stay as they are; what they compute is kept, not computed anew"""
    recompute_activations: bool = False
    """what a layer computes is not kept for the backward pass but computed again: less memory,
    about a third more time"""


class Recipe(BaseRecipe):
    """All that determines the training of a classifier."""

    kind: Literal["classification"] = "classification"
    """labels for whole texts; for words see `litotes list tagging`"""
    data: DataSettings = DataSettings()
    model: ModelSettings = ModelSettings()
    training: TrainingSettings = TrainingSettings()


recipe_of = Recipe.of


# Models that answer words


class WordDataSettings(Table):
    """The `[data]` table."""

    source: str
    """NAME:PATH[?option=value], a source of words of `litotes list sources`"""
    leaks: Literal["drop", "keep"] = "drop"
    """training texts that also sit in another split: dropped or kept"""


class WordModelSettings(PrunedSettings):
    """The `[model]` table. Pieces that leave are restored at the end, so that every word has its
    answer.
    """

    def attention_choices(self) -> dict[str, Any]:
        choices = super().attention_choices()
        if self.pruning != "none":
            choices["pruning_options"] = {"restore": True, **self.pruning_options}
        return choices


class WordTrainingSettings(JudgedTraining):
    """The `[training]` table."""

    learning_rate: Positive = 1e-4
    head_learning_rate: Positive | None = 1e-3
    """for the head alone; None: the same as the encoder's"""
    class_weights: bool = False
    """weigh labels of words by their inverse frequency; tagging alone"""


class WordRecipe(BaseRecipe):
    """All that determines the training of a model that answers words."""

    kind: Literal["tagging", "span"]
    """tagging: a label for every word; span: where a stretch begins and ends"""
    data: WordDataSettings
    model: WordModelSettings = WordModelSettings()
    training: WordTrainingSettings = WordTrainingSettings()

    @model_validator(mode="after")
    def _weighs_tags_alone(self) -> Self:
        if self.kind == "span" and self.training.class_weights:
            raise ValueError("class_weights is about tags; leave it out of a span's recipe.")
        return self


# Pretraining


class TextSettings(Table):
    """The `[data]` table: which texts."""

    source: str | list[str]
    """one or several of: FILE (.txt, .jsonl, .csv, .tsv, .parquet; FILE?text=COLUMN), or
    NAME[:PATH][?option=value], see `litotes list sources`"""
    where: Where = Where()
    join_lines: bool = False
    """lines of a document are read together, as many as fit; a blank line of a .txt, or the end of
    a row, ends a document"""
    held_out: Annotated[float, Field(gt=0, lt=0.5)] = 0.05
    """share of the texts kept apart to measure perplexity on"""

    @property
    def sources(self) -> tuple[str, ...]:
        return (self.source,) if isinstance(self.source, str) else tuple(self.source)


def divide_by_heads(width: int | None, n_attention_heads: int) -> None:
    """Refuses a width that attention heads cannot share."""
    if width is not None and width % n_attention_heads:
        raise ValueError(
            f"width = {width} is not a multiple of {n_attention_heads} attention heads. Change one"
            " of them."
        )


class ScratchSettings(Table):
    """The `[model.scratch]` table: a BERT of random weights in place of a named encoder."""

    n_layers: Layers = 4
    width: int = Field(256, ge=1, le=65_536)
    n_attention_heads: Heads = 4
    inner_width: Count | None = None
    """None: four times the width"""
    n_positions: int = Field(512, ge=8)
    """the longest text, in pieces"""
    dropout: Part = 0.1
    tokenizer: str = TRAINED
    """trained: WordPiece learned from the texts; or that of an encoder"""
    n_vocabulary: int = Field(8192, ge=64)
    """pieces of a trained tokenizer"""
    lower_case: bool = True
    """whether a trained tokenizer ignores case"""

    @model_validator(mode="after")
    def _has_whole_heads(self) -> Self:
        divide_by_heads(self.width, self.n_attention_heads)
        return self


class LanguageModelSettings(AttentionSettings):
    """The `[model]` table."""

    encoder: str | None = None
    """where to go on from: a named encoder, a folder, or OWNER/NAME@REVISION; None: minilm, unless
    there is [model.scratch]"""
    scratch: ScratchSettings | None = None

    @model_validator(mode="after")
    def _begins_once(self) -> Self:
        if self.scratch is not None and self.encoder is not None:
            raise ValueError(
                "encoder goes on from an encoder and [model.scratch] starts a new one: leave one of"
                " them out."
            )
        return self


class ObjectiveSettings(Table):
    """The `[objective]` table: what is to be guessed."""

    share: Annotated[float, Field(gt=0, lt=1)] = 0.15
    """of the pieces that are to be guessed"""
    masked: Share = 0.8
    """of these, replaced by the mask"""
    random: Share = 0.1
    """of these, replaced by any piece"""
    whole_words: bool = False
    """all pieces of a word are chosen, or none"""
    next_sentence: bool = False
    """also: does the second half follow the first? needs data.join_lines"""

    @model_validator(mode="after")
    def _replaces_at_most_all(self) -> Self:
        if self.masked + self.random > 1:
            raise ValueError("masked and random are more than 1 together. Lower one.")
        return self


class PretrainSettings(EncoderTraining):
    """The `[training]` table."""

    epochs: Count = 3
    """passes over the texts"""
    learning_rate: Positive = 1e-4
    batch_texts: Count = 32
    """texts a step"""
    steps: Count | None = None
    """None: as many as the epochs have"""
    reports: Count = 10
    """how often held-out perplexity is measured"""


class PretrainRecipe(BaseRecipe):
    """All that determines a pretraining."""

    kind: Literal["pretraining"] = "pretraining"
    data: TextSettings
    model: LanguageModelSettings = LanguageModelSettings()
    objective: ObjectiveSettings = ObjectiveSettings()
    training: PretrainSettings = PretrainSettings()

    @model_validator(mode="after")
    def _joins_what_follows(self) -> Self:
        if self.objective.next_sentence and not self.data.join_lines:
            raise ValueError(
                "objective.next_sentence needs lines that follow one another: set data.join_lines ="
                " true."
            )
        return self


# Translation


class PairSettings(Table):
    """The `[data]` table: which parallel texts."""

    source: str
    """NAME:PATH[?option=value], see `litotes list parallel`: multi30k, sign, tsv …"""


class TranslationModelSettings(AttentionSettings):
    """The `[model]` table."""

    encoder: str | None = None
    """where to begin: a name of `litotes encoders list`, a folder, or OWNER/NAME@REVISION; None:
    from scratch, with a vocabulary learned from the texts"""
    n_layers: Layers = 4
    """of the decoder, and of a new encoder"""
    width: Annotated[int, Field(ge=2, le=65_536)] | None = None
    """None: that of the encoder, 256 from scratch"""
    n_attention_heads: Heads = 4
    inner_width: Count | None = None
    """None: twice the width"""
    n_vocabulary: int = Field(8000, ge=260)
    """pieces of a vocabulary that is learned"""
    lower_case: bool = False
    """whether a vocabulary that is learned ignores case"""
    positions: Literal["sinusoidal", "learned"] = "sinusoidal"
    norm_first: bool = True
    """norms before attention and feed-forward, not after"""
    tied: Literal["all", "target", "none"] = "all"
    """tables of pieces that are one: all three, input and output, or none"""
    dropout: Part = 0.1
    attention_dropout: Part = 0.1
    max_pieces: int = Field(256, ge=4)
    """the longest text of either side, in pieces"""

    @model_validator(mode="after")
    def _has_whole_heads(self) -> Self:
        divide_by_heads(self.width, self.n_attention_heads)
        return self


class TranslationTraining(RunSettings):
    """The `[training]` table."""

    epochs: Count = 30
    """passes over the pairs"""
    batch_pieces: int = Field(8192, ge=16)
    """pieces a step, both sides together"""
    learning_rate: Positive = 2e-3
    """the highest, at the end of the warm-up"""
    warmup_steps: Count = 1000
    """in which the rate rises; after them it falls as 1 / √step"""
    weighting_learning_rate: Positive | None = None
    """for what a weighting learns; None: the same"""
    label_smoothing: Part = 0.1
    weight_decay: NotNegative = 0.0
    """not applied to biases and norms"""
    averaged: Count = 5
    """the weights are the mean of those after the last so many epochs"""
    precision: Literal["auto", "float32", "tf32", "bfloat16"] = "auto"  # type: ignore[assignment]
    """auto: bfloat16 on CUDA, float32 elsewhere"""


class SearchSettings(Table):
    """The `[search]` table: how texts are found."""

    beams: int = Field(5, ge=1, le=1000)
    """1: the best piece at every step"""
    length_penalty: float = Field(1.0, ge=0, le=10)
    """0 favours short texts"""
    ratio: float = Field(2.0, gt=0, le=100)
    """target pieces per source piece, at most"""


class TranslationRecipe(BaseRecipe):
    """All that determines the training of a translation model."""

    kind: Literal["translation"] = "translation"
    data: PairSettings
    model: TranslationModelSettings = TranslationModelSettings()
    training: TranslationTraining = TranslationTraining()
    search: SearchSettings = SearchSettings()


RECIPES: dict[str, type[BaseRecipe]] = {
    "classification": Recipe,
    "tagging": WordRecipe,
    "span": WordRecipe,
    "pretraining": PretrainRecipe,
    "translation": TranslationRecipe,
}
"""The class that checks each kind of recipe."""


# Reading


def read_recipe(file: Path, *, changes: Sequence[str] = ()) -> BaseRecipe:
    """Reads a recipe file of any kind; without one it is about a classifier."""
    content = read_settings(file, changes)
    kind = str(content.get("kind", CLASSIFICATION))
    return pick(RECIPES, kind, "kind of model called").of(content, str(file))


def read_settings(
    file: Path, changes: Sequence[str] = (), *, kind: str = "recipe"
) -> dict[str, Any]:
    """The tables of a TOML or JSON file, with `a.b=c` changes. kind: what it is, for the errors."""
    if not file.is_file():
        raise UserError(
            f"{file}: no such {kind}. Examples are in recipes/; `litotes list settings` names what"
            " can be set."
        )
    try:
        text = file.read_text("utf-8")
        content = from_json(text) if file.suffix == ".json" else tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # not UTF-8, not TOML, nested too deeply
        raise UserError(f"{file}: not readable as a {kind} ({error}).") from error
    if not isinstance(content, dict):
        raise UserError(f"{file}: not readable as a {kind} (not a table of settings).")
    apply_changes(content, changes)
    return content


def apply_changes(content: dict[str, Any], changes: Sequence[str]) -> None:
    """Puts `a.b=c` into tables read from TOML."""
    for change in changes:
        path, equals, text = (part.strip() for part in change.partition("="))
        if not equals:
            raise UserError(
                f"--set {change}: write it as key=value, for example --set training.epochs=3."
            )
        value: Any = text
        # what is no TOML, or is nested too deeply, is a word
        with suppress(ValueError, RecursionError):
            value = tomllib.loads(f"value = {text}")["value"]
        put(content, path.split("."), value, where=f"--set {path}")


def put(content: dict[str, Any], path: Sequence[str], value: Any, *, where: str) -> None:
    """Sets a value inside nested tables, which are made where they are missing."""
    *tables, key = path
    for table in tables:
        inner = content.setdefault(table, {})
        if not isinstance(inner, dict):
            raise UserError(f"{where}: {table!r} is a value, not a table.")
        content = inner
    content[key] = value


def first_problem(error: ValidationError) -> str:
    """The first problem in words, with the place where it is."""
    problems = error.errors(include_url=False)
    first, place = problems[0], problems[0]["loc"]
    messages = [first["msg"].removeprefix("Value error, ")]
    if place and place[-1] in ("bool", "int", "float", "str"):
        # each type that a value may have reports by itself, its name behind the value's place
        place, n = place[:-1], len(place) - 1
        about = [one for one in problems if one["loc"][:n] == place]
        messages = [f"{one['loc'][n]}: {one['msg']}" for one in about]
    path = ".".join(map(str, place))
    if first["type"] not in ("value_error", "missing"):
        path += f" = {reprlib.repr(first['input'])}"  # it may be long or deeply nested
    return ": ".join(filter(None, (path, " / ".join(dict.fromkeys(messages)))))
