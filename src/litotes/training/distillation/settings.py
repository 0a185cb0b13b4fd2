"""The recipe of a distillation: a recipe of the student, and a `[distill]` table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from litotes.core.errors import UserError
from litotes.training.recipe import (
    Recipe,
    first_problem,
    read_changed,
    recipe_of,
)

Match = Literal["none", "hidden", "values", "relations"]
Start = Literal["encoder", "teacher", "fresh"]


class TeacherSettings(BaseModel):
    """The `[distill.teacher]` table: what differs from the student's `[model]` and `[training]`."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    model: dict[str, Any] = Field({}, description='for example {encoder = "mpnet"}')
    training: dict[str, Any] = Field({}, description="for example {learning_rate = 3e-5}")


class DistillSettings(BaseModel):
    """The `[distill]` table."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    teacher: TeacherSettings = TeacherSettings()
    teachers: list[str] = Field(
        [], description="model folders that teach instead of teachers trained here"
    )
    folds: int = Field(3, ge=2, le=100, description="teachers never see the fold they answer")
    teachers_a_fold: int = Field(
        1, ge=1, le=100, description="of different seeds; they are averaged"
    )
    seed: int = Field(0, ge=0, lt=2**31, description="of the folds and of the teachers")
    share: float = Field(0.5, ge=0, le=1, description="how much answers count against labels")
    temperature: float = Field(
        1.0, gt=0, description="softens both answers before they are compared"
    )
    unlabelled: Literal["none", "selection", "source"] = Field(
        "selection",
        description=(
            "other texts to learn from by answers alone: none, those of data.where that lack a"
            " label of these tasks, or all of the source"
        ),
    )
    more: list[str] = Field(
        [], description="sources of still more texts, whose labels are not read"
    )
    even: list[str] = Field(
        [],
        description=(
            "sources whose neutral texts are taught as even between the labels, so that a student"
            " without a third label is not sure of them"
        ),
    )
    prevalence: dict[str, dict[str, dict[str, float]]] = Field(
        {},
        description=(
            "how frequent labels are in a source, where that is known, {source = {task = {label ="
            " share}}}: answers to its texts without a label are moved there"
        ),
    )
    start: Start = Field(
        "encoder", description="the student's first weights: of model.encoder, a teacher, or random"
    )
    layers: int | None = Field(None, ge=1, description="of the student, evenly spaced; None: all")
    width: int | None = Field(
        None, ge=1, description="of the student: its most used columns; None: as it is"
    )
    match: Match = Field(
        "none",
        description=(
            "what the student imitates before it learns answers: nothing, hidden states, or"
            " relations between pieces (by values, or by queries and keys as well)"
        ),
    )
    match_epochs: int = Field(3, ge=1, description="passes over all texts for that")
    match_rate: float = Field(2e-4, gt=0, description="the learning rate for that")
    baseline: bool = Field(True, description="also train a student of labels alone, to compare")
    compare_layers: list[int] = Field(
        [], description="also train students with so many layers, for the frontier"
    )
    keep_teachers: bool = Field(False, description="keep the models of teachers, not just answers")
    teachers_folder: str | None = Field(
        None, description="where answers of teachers are kept, to share them between students"
    )


@dataclass(frozen=True)
class DistillRecipe:
    """The student's recipe, and how it is taught."""

    student: Recipe
    distill: DistillSettings

    def teacher(self, seed: int) -> Recipe:
        """The recipe of the teachers of one seed, for texts that are cleaned and chosen already."""
        content = self.student.model_dump()
        for table in ("model", "training"):
            content[table] |= getattr(self.distill.teacher, table)
        content["training"]["reserved"] = 0.0
        content["seed"] = seed
        data = {"source": self.student.data.source, "tasks": self.student.data.tasks}
        content["data"] = data | {"leaks": "keep"}
        return recipe_of(content, "[distill.teacher]")

    def changed(self, **values: Any) -> DistillRecipe:
        """A copy with other values in the `[distill]` table."""
        content = self.distill.model_dump() | values
        return replace(self, distill=_settings_of(content, "recipe"))


def read_distill_recipe(file: Path, *, changes: Sequence[str] = ()) -> DistillRecipe:
    """Reads a recipe file with a `[distill]` table and applies `a.b=c` changes."""
    content = read_changed(file, changes, advice="recipes/distill.toml is an example.")
    return distill_recipe_of(content, str(file))


def distill_recipe_of(content: dict[str, Any], where: str) -> DistillRecipe:
    """The checked recipe; `where` is named when it is wrong."""
    student = {name: table for name, table in content.items() if name != "distill"}
    recipe = DistillRecipe(
        recipe_of(student, where), _settings_of(content.get("distill", {}), where)
    )
    recipe.teacher(0)  # a wrong setting of theirs is told now
    return recipe


def _settings_of(content: Any, where: str) -> DistillSettings:
    class Whole(BaseModel):
        """So that an error names the table."""

        distill: DistillSettings

    try:
        return Whole.model_validate({"distill": content}).distill
    except ValidationError as error:
        raise UserError(f"{where}: {first_problem(error, Whole)}") from error
