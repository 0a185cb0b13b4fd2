"""A run as data: a TOML file, changed by `--set a.b=c`, checked before anything starts.

The tables of every objective stand here; what they share, once.
"""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from reprlib import Repr
from typing import Any, ClassVar, Literal, Self, TypeVar, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import ErrorDetails

from litotes.core.errors import UserError
from litotes.core.json_text import from_json
from litotes.core.registry import unknown_name
from litotes.core.text import is_utf8, one_line
from litotes.core.values import CLASSIFICATION, KINDS, WORD_KINDS
from litotes.data.corpus import Axis

Words = str | list[str] | None
Options = dict[str, bool | int | float | str | list[float]]

TRAINED = "trained"
"""In place of an encoder's name: a tokenizer that is learned from the texts."""

_SHORT = Repr()
"""How a wrong value is quoted: it may be long or deeply nested."""
_SHORT.maxstring = _SHORT.maxother = 80


class Table(BaseModel):
    """A table of a recipe: no setting that it does not know."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


AnyTable = TypeVar("AnyTable", bound=BaseModel)


class RunSettings(Table):
    """What every `[training]` table has."""

    epochs: int = Field(8, ge=1, description="passes over the training texts, at most")
    learning_rate: float = Field(5e-5, gt=0)
    weight_decay: float = Field(0.01, ge=0, description="not applied to biases and norms")
    max_gradient_norm: float = Field(1.0, ge=0, description="0: no limit")
    precision: Literal["auto", "float32", "bfloat16"] = Field(
        "auto", description="auto: bfloat16 on CUDA, float32 elsewhere"
    )
    checkpoint_seconds: float = Field(
        120.0, ge=0, description="how much work a crash may cost at most"
    )
    tracker: Literal["none", "tensorboard", "mlflow"] = "none"


class EncoderTraining(RunSettings):
    """What the `[training]` tables have in which an encoder learns."""

    batch_texts: int = Field(16, ge=1, description="texts a step")
    optimizer: Literal["adamw", "adam"] = "adamw"
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
    schedule: Literal["linear", "constant"] = Field(
        "linear", description="after the warm-up: down to 0, or level"
    )
    warmup_share: float = Field(
        0.1, ge=0, lt=1, description="share of the steps in which the learning rate rises"
    )
    pieces_at_once: int | None = Field(
        None,
        ge=1,
        description=(
            "a step's texts are computed in parts of at most so many pieces, which takes less"
            " memory; None: together"
        ),
    )


class JudgedTraining(EncoderTraining):
    """What the `[training]` tables have in which held-out texts choose the best epoch."""

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


class AttentionSettings(Table):
    """What every `[model]` table has: how attention works, and how much is read."""

    weighting: str = Field(
        "softmax", description="how affinities become weights, see `litotes list weightings`"
    )
    weighting_options: Options = Field({}, description='for example {alpha = "learned"}')
    max_pieces: int | None = Field(None, description="None: what the encoder can read, at most 512")


class PrunedSettings(AttentionSettings):
    """What the `[model]` tables have whose encoder may be pruned."""

    encoder: str = Field(
        "minilm", description="a name of `litotes encoders list`, a folder, or OWNER/NAME@REVISION"
    )
    pruning: str = Field(
        "none", description="which pieces and attention heads go on, see `litotes list prunings`"
    )
    pruning_options: Options = Field(
        {}, description='for example {schedule = "geometric", final = 0.3}'
    )
    dropout: float = Field(0.1, ge=0, lt=1, description="before the output of the head")

    def attention_choices(self) -> dict[str, Any]:
        """The weighting and the pruning, with their options, and how much is read."""
        chosen = {"weighting", "weighting_options", "pruning", "pruning_options", "max_pieces"}
        return self.model_dump(include=chosen)


class BaseRecipe(Table):
    """What every recipe has: all that determines a run."""

    example: ClassVar[str]
    listed: ClassVar[str]  # `litotes list …` names all that can be set
    required: ClassVar[tuple[str, ...]] = ()  # tables without which there is nothing to do

    seed: int = Field(0, ge=0, lt=2**32)

    def __repr__(self) -> str:
        return one_line(self, **self.model_dump(exclude_defaults=True))

    def key(self) -> str:
        """A hash of everything that can change the result."""
        return key_of(deciding_settings(self))

    def changed(self, **paths: Any) -> Self:
        """A copy with values at dotted paths replaced (dots written as two underscores:
        `data__where__variety="en-AU"`).
        """
        return check_recipe(type(self), changed_settings(self, paths), "recipe")

    def contradiction(self) -> str | None:
        """Settings that do not go together, in words."""
        return None

    @classmethod
    def read(cls, file: Path, *, changes: Sequence[str] = ()) -> Self:
        """Reads a recipe file (.toml, or the recipe.json of a run) and applies `a.b=c` changes."""
        advice = f"An example is {cls.example}; `litotes list {cls.listed}` names all settings."
        return cls.of(read_changed(file, changes, advice=advice), str(file))

    @classmethod
    def of(cls, content: Mapping[str, Any], where: str) -> Self:
        """The checked recipe; `where` is named when it is wrong."""
        asked = content.get("kind")
        if cls is Recipe and asked in KINDS and asked != CLASSIFICATION:
            function = "train_words" if asked in WORD_KINDS else "training.run.train"
            raise UserError(
                f'{where}: kind = "{asked}" makes a model that answers {KINDS[asked]}, which is not'
                f" for this. `litotes train` takes it; in Python, `litotes.{function}`."
            )
        return check_recipe(cls, content, where)


# Classification


class Where(Table):
    """Which texts: the `[data.where]` table."""

    variety: Words = None
    source: Words = None


class DataSettings(Table):
    """The `[data]` table: which corpus, which tasks, which part of it."""

    source: str = Field(
        "sampler", description="NAME[:PATH][?option=value], see `litotes list sources`"
    )
    tasks: list[str] | None = Field(None, description="None: all the corpus has")
    where: Where = Where()
    labels: dict[str, dict[str, str]] = Field(
        {},
        description=(
            'label words to replace, by task: {sentiment = {neutral = ""}}; "" takes the label away'
        ),
    )
    avoid: list[str] = Field(
        [],
        description=(
            "sources whose test and valid texts must not be learned from, in whatever spelling"
        ),
    )
    rewrites: list[str] = Field(
        [],
        description="features of varieties to train with, see `litotes list rewrites`; []: none",
    )
    rewrite_share: float = Field(
        0.5,
        gt=0,
        le=1,
        description="share of the training texts that are learned from as `rewrites` change them",
    )
    leaks: Literal["drop", "keep", "join"] = Field(
        "drop",
        description=(
            "training texts that also sit in another split, under whatever task: dropped, kept, or"
            " given the labels from there"
        ),
    )


class ModelSettings(PrunedSettings):
    """The `[model]` table."""

    head: str = Field("mean", description="see `litotes list heads`")
    separate: bool = Field(
        False, description="a model of its own for every task instead of one for all"
    )


class TrainingSettings(JudgedTraining):
    """The `[training]` table of a recipe.

    The defaults are ours; the paper's are in `recipes/paper_*.toml`.
    """

    class_weights: bool = Field(True, description="weigh classes by their inverse frequency")
    balancing: str = Field(
        "sum", description="how several tasks share a step, see `litotes list balancings`"
    )
    groups: Literal["none", "group_dro"] = Field(
        "none", description="group_dro: groups that do badly count more"
    )
    group_by: Axis = Field("variety", description="what a group is, for group_dro and worst_group")
    group_rate: float = Field(0.01, gt=0, description="how fast group_dro moves its weights")
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
    freeze_below: int = Field(
        0,
        ge=0,
        description=(
            "layers under this one stay as they are; what they compute is kept, not computed anew"
        ),
    )
    recompute_activations: bool = Field(
        False,
        description=(
            "what a layer computes is not kept for the backward pass but computed again: less"
            " memory, about a third more time"
        ),
    )


class Recipe(BaseRecipe):
    """All that determines the training of a classifier."""

    example = "recipes/quick.toml"
    listed = "settings"

    kind: Literal["classification"] = Field(
        "classification", description="labels for whole texts; for words see `litotes list tagging`"
    )
    data: DataSettings = DataSettings()
    model: ModelSettings = ModelSettings()
    training: TrainingSettings = TrainingSettings()


read_recipe, recipe_of = Recipe.read, Recipe.of
"""For those who want a classifier."""


# Models that answer words


class WordDataSettings(Table):
    """The `[data]` table."""

    source: str = Field(
        description="NAME:PATH[?option=value], a source of words of `litotes list sources`"
    )
    leaks: Literal["drop", "keep"] = Field(
        "drop", description="training texts that also sit in another split: dropped or kept"
    )


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

    learning_rate: float = Field(1e-4, gt=0)
    head_learning_rate: float | None = Field(
        1e-3, gt=0, description="for the head alone; None: the same as the encoder's"
    )
    class_weights: bool = Field(
        False, description="weigh labels of words by their inverse frequency; tagging alone"
    )


class WordRecipe(BaseRecipe):
    """All that determines the training of a model that answers words."""

    example = "recipes/tagging.toml"
    listed = "tagging"
    required = ("data",)

    kind: Literal["tagging", "span"] = Field(
        description="tagging: a label for every word; span: where a stretch begins and ends"
    )
    data: WordDataSettings
    model: WordModelSettings = WordModelSettings()
    training: WordTrainingSettings = WordTrainingSettings()

    def contradiction(self) -> str | None:
        if self.kind == "span" and self.training.class_weights:
            return "class_weights is about tags; leave it out of a span's recipe."
        return None


# Pretraining


class TextSettings(Table):
    """The `[data]` table: which texts."""

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


class ScratchSettings(Table):
    """The `[model.scratch]` table: a BERT of random weights in place of a named encoder."""

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


class LanguageModelSettings(AttentionSettings):
    """The `[model]` table."""

    encoder: str | None = Field(
        None,
        description=(
            "where to go on from: a named encoder, a folder, or OWNER/NAME@REVISION; None:"
            " minilm, unless there is [model.scratch]"
        ),
    )
    scratch: ScratchSettings | None = None


class ObjectiveSettings(Table):
    """The `[objective]` table: what is to be guessed."""

    share: float = Field(0.15, gt=0, lt=1, description="of the pieces that are to be guessed")
    masked: float = Field(0.8, ge=0, le=1, description="of these, replaced by the mask")
    random: float = Field(0.1, ge=0, le=1, description="of these, replaced by any piece")
    whole_words: bool = Field(False, description="all pieces of a word are chosen, or none")
    next_sentence: bool = Field(
        False, description="also: does the second half follow the first? needs data.join_lines"
    )


class PretrainSettings(EncoderTraining):
    """The `[training]` table."""

    epochs: int = Field(3, ge=1, description="passes over the texts")
    learning_rate: float = Field(1e-4, gt=0)
    batch_texts: int = Field(32, ge=1, description="texts a step")
    steps: int | None = Field(None, ge=1, description="None: as many as the epochs have")
    reports: int = Field(10, ge=1, description="how often held-out perplexity is measured")


class PretrainRecipe(BaseRecipe):
    """All that determines a pretraining."""

    example = "recipes/pretrain.toml"
    listed = "pretraining"
    required = ("data",)

    kind: Literal["pretraining"] = "pretraining"
    data: TextSettings
    model: LanguageModelSettings = LanguageModelSettings()
    objective: ObjectiveSettings = ObjectiveSettings()
    training: PretrainSettings = PretrainSettings()

    def contradiction(self) -> str | None:
        objective, model = self.objective, self.model
        if objective.masked + objective.random > 1:
            return "objective.masked and objective.random are more than 1 together. Lower one."
        if objective.next_sentence and not self.data.join_lines:
            return (
                "objective.next_sentence needs lines that follow one another: set data.join_lines ="
                " true."
            )
        if model.scratch is None:
            return None
        if model.encoder is not None:
            return (
                "model.encoder goes on from an encoder and [model.scratch] starts a new one: leave"
                " one of them out."
            )
        if model.scratch.width % model.scratch.n_attention_heads:
            return (
                f"model.scratch.width = {model.scratch.width} is not a multiple of"
                f" {model.scratch.n_attention_heads} attention heads. Change one of them."
            )
        return None


# Translation


class PairSettings(Table):
    """The `[data]` table: which parallel texts."""

    source: str = Field(
        description="NAME:PATH[?option=value], see `litotes list parallel`: multi30k, sign, tsv …"
    )


class TranslationModelSettings(AttentionSettings):
    """The `[model]` table."""

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
    dropout: float = Field(0.1, ge=0, lt=1)
    attention_dropout: float = Field(0.1, ge=0, lt=1)
    max_pieces: int = Field(256, ge=4, description="the longest text of either side, in pieces")


class TranslationTraining(RunSettings):
    """The `[training]` table."""

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
    averaged: int = Field(
        5, ge=1, description="the weights are the mean of those after the last so many epochs"
    )
    precision: Literal["auto", "float32", "tf32", "bfloat16"] = Field(  # type: ignore[assignment]
        "auto", description="auto: bfloat16 on CUDA, float32 elsewhere"
    )


class SearchSettings(Table):
    """The `[search]` table: how texts are found."""

    beams: int = Field(5, ge=1, le=1000, description="1: the best piece at every step")
    length_penalty: float = Field(1.0, ge=0, le=10, description="0 favours short texts")
    ratio: float = Field(2.0, gt=0, le=100, description="target pieces per source piece, at most")


class TranslationRecipe(BaseRecipe):
    """All that determines the training of a translation model."""

    example = "recipes/multi30k.toml"
    listed = "translation"
    required = ("data",)

    kind: Literal["translation"] = "translation"
    data: PairSettings
    model: TranslationModelSettings = TranslationModelSettings()
    training: TranslationTraining = TranslationTraining()
    search: SearchSettings = SearchSettings()

    def contradiction(self) -> str | None:
        width, n_heads = self.model.width, self.model.n_attention_heads
        if width is None or not width % n_heads:
            return None
        return (
            f"model.width = {width} is not a multiple of {n_heads} attention heads. Change one of"
            " them."
        )


# Reading


def check_recipe(model: type[AnyTable], content: Mapping[str, Any], where: str) -> AnyTable:
    """The settings of any table; `where` is named when they are wrong."""
    empty: dict[str, Any] = {name: {} for name in getattr(model, "required", ())}
    try:
        recipe = model.model_validate(empty | dict(content))
    except ValidationError as error:
        raise UserError(f"{where}: {first_problem(error, model)}") from error
    if not is_utf8(json.dumps(recipe.model_dump(), ensure_ascii=False)):
        raise UserError(f"{where}: a setting is not UTF-8. Rename the file or folder it names.")
    problem = recipe.contradiction() if isinstance(recipe, BaseRecipe) else None
    if problem is not None:
        raise UserError(f"{where}: {problem}")
    return recipe


def changed_settings(recipe: BaseModel, paths: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a recipe of any kind with the values at `paths` replaced, whose dots are
    written as two underscores.
    """
    content = recipe.model_dump()
    for path, value in paths.items():
        put(content, path.split("__"), value, where=path)
    return content


def deciding_settings(recipe: BaseModel) -> dict[str, Any]:
    """What of a recipe of any kind can change the result, as JSON has it."""
    return recipe.model_dump(mode="json", exclude={"training": {"checkpoint_seconds", "tracker"}})


def key_of(content: Mapping[str, Any]) -> str:
    """A short hash of settings."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]


def read_changed(
    file: Path, changes: Sequence[str], *, advice: str, kind: str = "recipe"
) -> dict[str, Any]:
    """The tables of a file that must be there, with `a.b=c` changes. advice: where there is none.
    kind: what the file is, for the errors.
    """
    if not file.is_file():
        raise UserError(f"{file}: no such {kind}. {advice}")
    content = read_settings(file, kind)
    apply_changes(content, changes)
    return content


def read_kind(file: Path, *, changes: Sequence[str] = ()) -> object:
    """What kind of model a recipe file asks for; a file that cannot be read names none."""
    content: dict[str, Any] = {}
    if file.is_file():
        content = read_settings(file, "recipe")
        apply_changes(content, [change for change in changes if _key(change) == "kind"])
    return content.get("kind", CLASSIFICATION)


def _key(change: str) -> str:
    return change.partition("=")[0].strip()


def read_settings(file: Path, kind: str) -> dict[str, Any]:
    """The tables of a TOML or JSON file. kind: what the file is, for the error."""
    try:
        text = file.read_text("utf-8")
        content = from_json(text) if file.suffix == ".json" else tomllib.loads(text)
    except ValueError as error:  # also where it is not UTF-8
        raise UserError(f"{file}: not readable as a {kind} ({error}).") from error
    except RecursionError as error:
        raise UserError(f"{file}: not readable as a {kind} (nested too deeply).") from error
    if not isinstance(content, dict):
        raise UserError(f"{file}: not readable as a {kind} (not a table of settings).")
    return content


def apply_changes(content: dict[str, Any], changes: Sequence[str]) -> None:
    """Puts `a.b=c` into tables read from TOML."""
    for change in changes:
        path, equals, value = change.partition("=")
        if not equals:
            raise UserError(
                f"--set {change}: write it as key=value, for example --set training.epochs=3."
            )
        put(content, path.strip().split("."), _value(value.strip()), where=f"--set {path.strip()}")


def put(content: dict[str, Any], path: Sequence[str], value: Any, *, where: str) -> None:
    """Sets a value inside nested tables, which are made where they are missing."""
    *tables, key = path
    for table in tables:
        inner = content.setdefault(table, {})
        if not isinstance(inner, dict):
            raise UserError(f"{where}: {table!r} is a value, not a table.")
        content = inner
    content[key] = value


def first_problem(error: ValidationError, model: type[BaseModel]) -> str:
    """The first problem in words; an unknown key is answered with the nearest one."""
    problems = error.errors(include_url=False)
    problem = problems[0]
    path = [str(part) for part in problem["loc"]]
    if problem["type"] == "extra_forbidden":
        names = [part for part in path[:-1] if not part.isdigit()]
        kind = f"setting in [{'.'.join(names)}] called" if names else "table or setting called"
        return unknown_name(path[-1], _fields(model, names), kind)
    if problem["type"] == "missing":
        return f"{'.'.join(path)} is missing."
    message = problem["msg"]
    types = _possible_types(problems)
    if types:
        path, message = path[:-1], f"Input should be one of {', '.join(types)}"
        if any(one["type"] == "finite_number" for one in problems):
            message += "; a number must be finite"
    return f"{'.'.join(path)} = {_SHORT.repr(problem['input'])}: {message}."


def _possible_types(problems: Sequence[ErrorDetails]) -> list[str]:
    """Those of a value that may have several, each of which pydantic reports by itself, with the
    type behind the value's place; none where the first problem is not of that kind.
    """
    *place, last = problems[0]["loc"]
    if last not in ("bool", "int", "float", "str"):
        return []
    n = len(place)
    types: dict[str, None] = {}  # a set that keeps its order
    for problem in problems:
        path = problem["loc"]
        if path[:n] == tuple(place) and len(path) > n:
            types[str(path[n])] = None
    return list(types) if len(types) > 1 else []


def _fields(model: type[BaseModel], names: Sequence[str]) -> Mapping[str, Any]:
    """The settings of the table that lies under these names."""
    for name in names:
        annotation = model.model_fields[name].annotation
        # a table, or a list of them
        inner = [part for part in (annotation, *get_args(annotation)) if _is_model(part)]
        if not inner:
            return {}
        model = inner[0]
    return model.model_fields


def _is_model(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)


def _value(text: str) -> Any:
    """A TOML value; what is not one is taken as a word."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except (ValueError, RecursionError):  # no TOML, too long a number, nested too deeply
        return text
