"""`litotes list [KIND]`: what there is, one line each."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pydantic import BaseModel

ABOUT = """\
Lists what there is to choose from: encoders, heads, weightings, prunings, sources, analyses,
rewrites, and every setting of a recipe.
"""
EXAMPLE = "litotes list heads"
USES = ("json",)


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "kind", nargs="?", choices=sorted(KINDS), metavar="KIND", help=", ".join(sorted(KINDS))
    )


def run(options: argparse.Namespace) -> None:
    from litotes.cli.display import print_json, print_table, say
    from litotes.core.errors import has_extra, require_extra

    if options.kind in _OF_TORCH:
        require_extra("train", f"`litotes list {options.kind}`")
    chosen = [options.kind] if options.kind else sorted(KINDS)
    if not has_extra("train"):
        chosen = [kind for kind in chosen if kind not in _OF_TORCH]
    if not options.kind and not has_extra("train"):
        left_out = ", ".join(_OF_TORCH)
        say([f"Left out: {left_out}. They need torch: `pip install 'litotes[train]'`."])
    content = {kind: KINDS[kind]() for kind in chosen}
    if options.json:
        print_json(content)
        return
    for kind, entries in content.items():
        print_table((kind, ""), list(entries.items()))


def _analyses() -> dict[str, str]:
    from litotes.explanation.analyses import ANALYSES

    return {name: _with_options(analysis) for name, analysis in ANALYSES.items()}


def _heads() -> dict[str, str]:
    from litotes.model.heads import HEADS, WORD_HEADS

    lines = {name: _first_paragraph(head) for name, head in HEADS.items()}
    for kind, head in WORD_HEADS.items():
        lines[f'kind = "{kind}"'] = _first_paragraph(head)
    return lines


def _balancings() -> dict[str, str]:
    from litotes.training.balancing import BALANCINGS

    return {name: _first_paragraph(balancing) for name, balancing in BALANCINGS.items()}


def _weightings() -> dict[str, str]:
    from litotes.encoder.attention import WEIGHTINGS

    return {name: _with_options(weighting) for name, weighting in WEIGHTINGS.items()}


def _prunings() -> dict[str, str]:
    from litotes.encoder.attention import PRUNINGS

    return {name: _with_options(pruning) for name, pruning in PRUNINGS.items()}


def _methods() -> dict[str, str]:
    from litotes.explanation.attribution import METHODS, available_methods

    return {name: _first_paragraph(METHODS[name]) for name in available_methods()}


def _encoders() -> dict[str, str]:
    from litotes.encoder.families import FAMILIES
    from litotes.encoder.fetching import FETCHABLE, describe_fetchable

    encoders = {name: describe_fetchable(name) for name in FETCHABLE}
    families = ", ".join(FAMILIES)
    encoders["FOLDER"] = f"config.json, model.safetensors, tokenizer.json of a {families} encoder"
    encoders["OWNER/NAME@REVISION"] = "the same from the Hugging Face Hub"
    return encoders


def _models() -> dict[str, str]:
    from litotes.model.builtin import built_in_models

    return built_in_models() | {"FOLDER": "what `litotes train` or `litotes prune` has made"}


def _sources() -> dict[str, str]:
    from litotes.data.sources import SOURCES
    from litotes.data.words import WORD_SOURCES

    lines = {name: f"{source.about}; {source.example}" for name, source in SOURCES.items()}
    for name, words in WORD_SOURCES.items():
        lines[name] = f"words: {words.about}; {words.example}"
    return lines


def _rewrites() -> dict[str, str]:
    from litotes.data.rewrites import REWRITES

    lines = {}
    for name, rewrite in REWRITES.items():
        number = "" if rewrite.feature is None else f"eWAVE {rewrite.feature}: "
        where = ", ".join(rewrite.common_in())
        lines[name] = f"{number}{rewrite.about}" + (f"; common in {where}" if where else "")
    return lines


def _settings() -> dict[str, str]:
    from litotes.training.distillation import DistillSettings
    from litotes.training.recipe import Recipe

    return _fields(Recipe, "") | _fields(DistillSettings, "distill.")


def _pretraining() -> dict[str, str]:
    from litotes.training.recipe import PretrainRecipe, ScratchSettings

    lines = _fields(PretrainRecipe, "")
    del lines["model.scratch"]  # a table, named by its settings
    return lines | _fields(ScratchSettings, "model.scratch.")


def _tagging() -> dict[str, str]:
    from litotes.training.recipe import WordRecipe

    return _fields(WordRecipe, "")


def _translation() -> dict[str, str]:
    from litotes.training.recipe import TranslationRecipe

    return _fields(TranslationRecipe, "")


def _parallel() -> dict[str, str]:
    from litotes.data.parallel import PARALLEL

    return {name: f"{source.about}; {source.example}" for name, source in PARALLEL.items()}


def _fields(model: type[BaseModel], prefix: str) -> dict[str, str]:
    """The fields of a recipe and of the models inside it, by their dotted names."""
    from pydantic import BaseModel

    lines: dict[str, str] = {}
    for name, field in model.model_fields.items():
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            lines |= _fields(field.annotation, f"{prefix}{name}.")
        else:
            default = "needed" if field.is_required() else repr(field.default)
            lines[f"{prefix}{name}"] = f"{default}  {field.description or ''}".strip()
    return lines


def _with_options(thing: Callable[..., object]) -> str:
    from litotes.core.registry import options_of

    options = ", ".join(f"{name} = {default!r}" for name, default in options_of(thing).items())
    return _first_paragraph(thing) + (f" Options: {options}." if options else "")


def _first_paragraph(thing: object) -> str:
    return " ".join((thing.__doc__ or "").split("\n\n")[0].split())


KINDS: dict[str, Callable[[], dict[str, str]]] = {
    "analyses": _analyses,
    "balancings": _balancings,
    "encoders": _encoders,
    "heads": _heads,
    "methods": _methods,
    "models": _models,
    "parallel": _parallel,
    "pretraining": _pretraining,
    "prunings": _prunings,
    "rewrites": _rewrites,
    "settings": _settings,
    "sources": _sources,
    "tagging": _tagging,
    "translation": _translation,
    "weightings": _weightings,
}
_OF_TORCH = (
    "analyses",
    "balancings",
    "heads",
    "pretraining",
    "prunings",
    "settings",
    "tagging",
    "translation",
    "weightings",
)
"""Read from modules that compute: importing them imports torch."""
