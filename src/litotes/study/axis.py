"""What a matrix is by: variety, source, cell, or any column of a table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import get_args

from litotes.core.errors import UserError
from litotes.data.cells import Axis
from litotes.data.sources import has_option, options_of, with_option
from litotes.training.recipe import Recipe


@dataclass(frozen=True)
class MatrixAxis:
    """The recipe whose texts carry what a matrix is by, the field they carry it in, and what the
    user calls it.
    """

    recipe: Recipe
    field: Axis
    name: str


def resolve_axis(recipe: Recipe, by: str) -> MatrixAxis:
    """by: variety, source or cell, or a column, which is then read as the variety."""
    for field in get_args(Axis):
        if by in (field, options_of(recipe.data.source).get(field)):
            return MatrixAxis(recipe, field, by)
    source = recipe.data.source
    if not has_option(source, "variety"):
        raise UserError(
            f"--by {by}: only a single table has columns to choose from, {source} does not. Choose"
            f" {', '.join(get_args(Axis))}."
        )
    if recipe.data.where.variety is not None:
        raise UserError(
            f"--by {by}: the recipe selects by another column, data.where.variety ="
            f" {recipe.data.where.variety!r}. Leave that out."
        )
    return MatrixAxis(
        recipe.changed(data__source=with_option(source, "variety", by)), "variety", by
    )
