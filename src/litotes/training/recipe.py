"""A run as data: a TOML file, changed by `--set a.b=c`, checked before anything starts."""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from reprlib import Repr
from typing import Any, Literal, TypeVar, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import ErrorDetails

from litotes.core.errors import UserError
from litotes.core.json_text import from_json
from litotes.core.registry import unknown_name
from litotes.core.text import is_utf8, one_line
from litotes.core.values import CLASSIFICATION, KINDS, TRANSLATION, WORD_KINDS
from litotes.training.settings import TrainingSettings

AnyRecipe = TypeVar("AnyRecipe", bound=BaseModel)
Words = str | list[str] | None
Options = dict[str, bool | int | float | str | list[float]]

_SHORT = Repr()
"""How a wrong value is quoted: it may be long or deeply nested."""
_SHORT.maxstring = _SHORT.maxother = 80


class Where(BaseModel):
    """Which texts: the `[data.where]` table."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    variety: Words = None
    source: Words = None


class DataSettings(BaseModel):
    """The `[data]` table: which corpus, which tasks, which part of it."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

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


class ModelSettings(BaseModel):
    """The `[model]` table."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    encoder: str = Field(
        "minilm", description="a name of `litotes encoders list`, a folder, or OWNER/NAME@REVISION"
    )
    head: str = Field("mean", description="see `litotes list heads`")
    separate: bool = Field(
        False, description="a model of its own for every task instead of one for all"
    )
    weighting: str = Field(
        "softmax", description="how affinities become weights, see `litotes list weightings`"
    )
    weighting_options: Options = Field({}, description='for example {alpha = "learned"}')
    pruning: str = Field(
        "none", description="which pieces and attention heads go on, see `litotes list prunings`"
    )
    pruning_options: Options = Field(
        {}, description='for example {schedule = "geometric", final = 0.3}'
    )
    dropout: float = Field(0.1, ge=0, lt=1, description="before the output of the head")
    max_pieces: int | None = Field(None, description="None: what the encoder can read, at most 512")


class Recipe(BaseModel):
    """All that determines a run."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    kind: Literal["classification"] = Field(
        "classification", description="labels for whole texts; for words see `litotes list tagging`"
    )
    seed: int = Field(0, ge=0, lt=2**32)
    data: DataSettings = DataSettings()
    model: ModelSettings = ModelSettings()
    training: TrainingSettings = TrainingSettings()

    def __repr__(self) -> str:
        return one_line(self, **self.model_dump(exclude_defaults=True))

    def key(self) -> str:
        """A hash of everything that can change the result."""
        content = deciding_settings(self)
        del content["kind"]  # as runs were named before there were kinds
        if not self.data.rewrites:  # as runs were named before there were rewrites
            del content["data"]["rewrites"], content["data"]["rewrite_share"]
        if self.training.split_seed is None:  # as before it could be set
            del content["training"]["split_seed"]
        return key_of(content)

    def changed(self, **paths: Any) -> Recipe:
        """A copy with values at dotted paths replaced (dots written as two underscores:
        `data__where__variety="en-AU"`).
        """
        return recipe_of(changed_settings(self, paths), "recipe")


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


def read_recipe(file: Path, *, changes: Sequence[str] = ()) -> Recipe:
    """Reads a recipe file (.toml, or the recipe.json of a run) and applies `a.b=c` changes."""
    advice = "Examples are in recipes/; `litotes list settings` names all that can be set."
    return recipe_of(read_changed(file, changes, advice=advice), str(file))


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


def recipe_of(content: dict[str, Any], where: str) -> Recipe:
    """The checked recipe; `where` is named when it is wrong."""
    kind = content.get("kind")
    if kind in (*WORD_KINDS, TRANSLATION):
        function = "litotes.train_words"
        if kind == TRANSLATION:
            function = "litotes.training.translation.train_translation"
        raise UserError(
            f'{where}: kind = "{kind}" makes a model that answers {KINDS[kind]}, which is not for'
            f" this. `litotes train` takes it; in Python, `{function}`."
        )
    return check_recipe(Recipe, content, where)


def check_recipe(model: type[AnyRecipe], content: Mapping[str, Any], where: str) -> AnyRecipe:
    """The recipe of any kind of run; `where` is named when it is wrong."""
    try:
        recipe = model.model_validate(content)
    except ValidationError as error:
        raise UserError(f"{where}: {first_problem(error, model)}") from error
    if not is_utf8(json.dumps(recipe.model_dump(), ensure_ascii=False)):
        raise UserError(f"{where}: a setting is not UTF-8. Rename the file or folder it names.")
    return recipe


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
