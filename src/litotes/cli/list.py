"""`litotes list [NAME]`: what there is to choose from, one line each."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from importlib import import_module
from typing import Any

from pydantic import BaseModel

from litotes.cli.display import print_json, say
from litotes.cli.tables import print_table
from litotes.core.errors import has_extra, require_extra
from litotes.core.registry import options_of, pick
from litotes.data.parallel import PARALLEL
from litotes.data.rewrites import REWRITES
from litotes.data.sources import SOURCES
from litotes.data.words import WORD_SOURCES
from litotes.encoder.families import FAMILIES
from litotes.encoder.fetching import FETCHABLE, describe_fetchable
from litotes.explanation.attribution import METHODS, available_methods
from litotes.model.builtin import built_in_models


def list_categories(options: argparse.Namespace) -> None:
    if options.name is not None:
        pick(CATEGORIES, options.name, "category")
    if options.name in OF_TORCH:
        require_extra("train", f"`litotes list {options.name}`")
    chosen = [options.name] if options.name else sorted(CATEGORIES)
    if not has_extra("train"):
        chosen = [name for name in chosen if name not in OF_TORCH]
        if options.name is None:
            left_out = ", ".join(OF_TORCH)
            say([f"Left out: {left_out}. They need torch: `pip install 'litotes[train]'`."])
    content = {name: CATEGORIES[name]() for name in chosen}
    if options.json:
        print_json(content)
    elif options.name is None:
        counts = [(name, str(len(found)), next(iter(found))) for name, found in content.items()]
        print_table(("litotes list …", "entries", "for example"), counts)
    else:
        for name, entries in content.items():
            print_table((name, ""), list(entries.items()))


def _table(module: str, name: str, *, with_options: bool = False) -> dict[str, str]:
    """The entries of a table in a module that imports torch, with how their docstrings begin."""
    table: Mapping[str, Callable[..., object]] = getattr(import_module(module), name)
    return {name: _first_paragraph(one, with_options) for name, one in table.items()}


def _first_paragraph(thing: Callable[..., object], with_options: bool = False) -> str:
    words = " ".join((thing.__doc__ or "").split("\n\n")[0].split())
    options = options_of(thing) if with_options else {}
    listed = ", ".join(f"{name} = {default!r}" for name, default in options.items())
    return words + (f" Options: {listed}." if options else "")


def _settings(*models: str) -> dict[str, str]:
    """All that can be set in a recipe. models: `prefix=module:class`."""
    lines: dict[str, str] = {}
    for written in models:
        prefix, _, place = written.partition("=")
        module, _, name = place.partition(":")
        lines |= _fields(getattr(import_module(module), name), prefix)
    return lines


def _fields(model: type[BaseModel], prefix: str) -> dict[str, str]:
    """The fields of a recipe and of the models inside it, by their dotted names."""
    lines: dict[str, str] = {}
    for name, field in model.model_fields.items():
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            lines |= _fields(field.annotation, f"{prefix}{name}.")
        else:
            words = ["needed" if field.is_required() else repr(field.default), ""]
            lines[f"{prefix}{name}"] = " ".join(words + (field.description or "").split()).strip()
    return lines


def _heads() -> dict[str, str]:
    words = _table("litotes.model.heads", "WORD_HEADS")
    kinds = {f'kind = "{kind}"': line for kind, line in words.items()}
    return _table("litotes.model.heads", "HEADS") | kinds


def _pretraining() -> dict[str, str]:
    lines = _settings("=litotes.training.recipe:PretrainRecipe")
    del lines["model.scratch"]  # a table, named by its settings
    return lines | _settings("model.scratch.=litotes.training.recipe:ScratchSettings")


def _methods() -> dict[str, str]:
    return {name: _first_paragraph(METHODS[name]) for name in available_methods()}


def _encoders() -> dict[str, str]:
    families = ", ".join(FAMILIES)
    return {name: describe_fetchable(name) for name in FETCHABLE} | {
        "FOLDER": f"config.json, model.safetensors, tokenizer.json of a {families} encoder",
        "OWNER/NAME@REVISION": "the same from the Hugging Face Hub",
    }


def _sources() -> dict[str, str]:
    words = {name: f"words: {line}" for name, line in _described(WORD_SOURCES.items()).items()}
    return _described(SOURCES.items()) | words


def _described(sources: Iterable[tuple[str, Any]]) -> dict[str, str]:
    return {name: f"{source.about}; {source.example}" for name, source in sources}


def _rewrites() -> dict[str, str]:
    lines = {}
    for name, rewrite in REWRITES.items():
        number = "" if rewrite.feature is None else f"eWAVE {rewrite.feature}: "
        where = ", ".join(rewrite.common_in())
        lines[name] = f"{number}{rewrite.about}" + (f"; common in {where}" if where else "")
    return lines


def _models() -> dict[str, str]:
    return built_in_models() | {"FOLDER": "what `litotes train` or `litotes prune` has made"}


_ANALYSES = "litotes.explanation.analyses"
_ATTENTION = "litotes.encoder.attention"
_RECIPE = "=litotes.training.recipe:"

OF_TORCH: dict[str, Callable[[], dict[str, str]]] = {
    "analyses": partial(_table, _ANALYSES, "ANALYSES", with_options=True),
    "balancings": partial(_table, "litotes.training.balancing", "BALANCINGS"),
    "heads": _heads,
    "pretraining": _pretraining,
    "prunings": partial(_table, _ATTENTION, "PRUNINGS", with_options=True),
    "settings": partial(
        _settings, f"{_RECIPE}Recipe", "distill.=litotes.training.distillation:DistillSettings"
    ),
    "tagging": partial(_settings, f"{_RECIPE}WordRecipe"),
    "translation": partial(_settings, f"{_RECIPE}TranslationRecipe"),
    "weightings": partial(_table, _ATTENTION, "WEIGHTINGS", with_options=True),
}
"""Read from modules that compute: importing them imports torch."""

CATEGORIES: dict[str, Callable[[], dict[str, str]]] = {
    **OF_TORCH,
    "encoders": _encoders,
    "methods": _methods,
    "models": _models,
    "parallel": partial(_described, PARALLEL.items()),
    "rewrites": _rewrites,
    "sources": _sources,
}
