"""`litotes list [NAME]`: what there is to choose from, one line each."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from pkgutil import resolve_name
from typing import Any

from litotes.cli.display import print_json, say
from litotes.cli.tables import print_table
from litotes.core.errors import has_extra, require_extra
from litotes.core.registry import options_of, pick


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


def _docstrings(place: str, *, with_options: bool = False, name: str = "{}") -> dict[str, str]:
    """Collects how the docstrings of a table's entries begin. name: what an entry is called."""
    return {
        name.format(key): _first_paragraph(entry, with_options)
        for key, entry in resolve_name(place).items()
    }


def _first_paragraph(thing: Callable[..., object], with_options: bool = False) -> str:
    words = " ".join((thing.__doc__ or "").split("\n\n")[0].split())
    options = options_of(thing) if with_options else {}
    listed = ", ".join(f"{name} = {default!r}" for name, default in options.items())
    return words + (f" Options: {listed}." if options else "")


def _settings(recipe: str, prefix: str = "") -> dict[str, str]:
    """All that can be set in a recipe."""
    return _fields(resolve_name(f"litotes.training.{recipe}"), prefix)


def _fields(model: Any, prefix: str) -> dict[str, str]:
    """The fields of a recipe and of the models inside it, by their dotted names."""
    lines: dict[str, str] = {}
    for name, field in model.model_fields.items():
        if hasattr(field.annotation, "model_fields"):
            lines |= _fields(field.annotation, f"{prefix}{name}.")
        else:
            words = ["needed" if field.is_required() else repr(field.default), ""]
            lines[f"{prefix}{name}"] = " ".join(words + (field.description or "").split()).strip()
    return lines


def _heads() -> dict[str, str]:
    kinds = _docstrings("litotes.model.heads:WORD_HEADS", name='kind = "{}"')
    return _docstrings("litotes.model.heads:HEADS") | kinds


def _all_settings() -> dict[str, str]:
    return _settings("recipe:Recipe") | _settings("distillation:DistillSettings", "distill.")


def _pretraining() -> dict[str, str]:
    lines = _settings("recipe:PretrainRecipe")
    del lines["model.scratch"]  # a table, named by its settings
    return lines | _settings("recipe:ScratchSettings", "model.scratch.")


def _methods() -> dict[str, str]:
    methods = resolve_name("litotes.explanation.attribution")
    return {name: _first_paragraph(methods.METHODS[name]) for name in methods.available_methods()}


def _encoders() -> dict[str, str]:
    fetching = resolve_name("litotes.encoder.fetching")
    families = ", ".join(resolve_name("litotes.encoder.families:FAMILIES"))
    return {name: fetching.describe_fetchable(name) for name in fetching.FETCHABLE} | {
        "FOLDER": f"config.json, model.safetensors, tokenizer.json of a {families} encoder",
        "OWNER/NAME@REVISION": "the same from the Hugging Face Hub",
    }


def _described(place: str, before: str = "") -> dict[str, str]:
    sources = resolve_name(f"litotes.data.{place}").items()
    return {name: f"{before}{source.about}; {source.example}" for name, source in sources}


def _sources() -> dict[str, str]:
    return _described("sources:SOURCES") | _described("words:WORD_SOURCES", "words: ")


def _rewrites() -> dict[str, str]:
    lines = {}
    for name, rewrite in resolve_name("litotes.data.rewrites:REWRITES").items():
        number = "" if rewrite.feature is None else f"eWAVE {rewrite.feature}: "
        where = ", ".join(rewrite.common_in())
        lines[name] = f"{number}{rewrite.about}" + (f"; common in {where}" if where else "")
    return lines


def _models() -> dict[str, str]:
    built_in: dict[str, str] = resolve_name("litotes.model.builtin:built_in_models")()
    return built_in | {"FOLDER": "what `litotes train` or `litotes prune` has made"}


_with_options = partial(_docstrings, with_options=True)

OF_TORCH: dict[str, Callable[[], dict[str, str]]] = {
    "analyses": partial(_with_options, "litotes.explanation.analyses:ANALYSES"),
    "balancings": partial(_docstrings, "litotes.training.balancing:BALANCINGS"),
    "heads": _heads,
    "pretraining": _pretraining,
    "prunings": partial(_with_options, "litotes.encoder.attention:PRUNINGS"),
    "settings": _all_settings,
    "tagging": partial(_settings, "recipe:WordRecipe"),
    "translation": partial(_settings, "recipe:TranslationRecipe"),
    "weightings": partial(_with_options, "litotes.encoder.attention:WEIGHTINGS"),
}
"""Read from modules that compute: importing them imports torch."""

CATEGORIES: dict[str, Callable[[], dict[str, str]]] = {
    **OF_TORCH,
    "encoders": _encoders,
    "methods": _methods,
    "models": _models,
    "parallel": partial(_described, "parallel:PARALLEL"),
    "rewrites": _rewrites,
    "sources": _sources,
}
"""The lists by category; a module is imported when its category is asked for."""
