"""`litotes translate [TEXT…] --model M [--file F]`, and `litotes interpret TEXT… --model M`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from litotes.cli.display import (
    flush_out,
    print_json,
    print_lines,
    say,
    visible,
    write_out,
)
from litotes.cli.predict import line_problem
from litotes.cli.scores import print_translation_scores
from litotes.cli.start import lean_torch
from litotes.core.errors import UserError, require_extra
from litotes.core.figures import render_figure
from litotes.core.json_text import to_json
from litotes.core.storage import write_bytes, write_text
from litotes.data.parallel import lines_of
from litotes.prediction.predictor import Predictor

with lean_torch():
    from litotes.training.translation import (
        Translation,
        Translator,
        score_translations,
    )
    from litotes.training.translation import translator as interpreting
    from litotes.training.translation.attention import (
        draw_source_attention,
        explain_translation,
    )

EVERY = "none"
"""As the judge of sarcasm: no model is asked, every text is taken as sarcastic."""


def translate(options: argparse.Namespace) -> None:
    _check(options)
    translator = Translator.load(options.model, device=options.device)
    found = _tell_cut(_translate(translator, options))
    if options.explain is not None:
        _explain(translator, next(found), options)
    elif options.json or options.out is not None or options.references:
        _write_all(list(found), options)
    else:
        for one in found:
            write_out(f"{visible(one.output)}\n")
            flush_out()


def _check(options: argparse.Namespace) -> None:
    if options.references:
        require_extra("translate", "--references")
    if options.explain is None:
        return
    if len(options.texts) != 1:
        raise UserError("--explain shows one text: give exactly one.")
    if options.explain.suffix not in (".svg", ".png", ".json"):
        raise UserError(f"{options.explain}: --explain writes .svg, .png or .json.")


def _translate(translator: Translator, options: argparse.Namespace) -> Iterator[Translation]:
    settings: dict[str, Any] = {"beams": options.beams, "length_penalty": options.length_penalty}
    if options.texts:
        return iter(translator.translate(options.texts, **settings))
    if options.file is not None:
        return translator.stream(_full(lines_of(options.file), str(options.file)), **settings)
    lines = (line.rstrip("\r\n") for line in sys.stdin)
    # a person who types waits for each answer
    at_once = 1 if sys.stdin.isatty() else None
    return translator.stream(_full(lines, "stdin"), at_once=at_once, **settings)


def _tell_cut(found: Iterable[Translation]) -> Iterator[Translation]:
    """The same, and a note for every text whose end was not seen."""
    for one in found:
        if one.truncated:
            say([f"This text is longer than the model reads, its end was not seen: {one.text:.60}"])
        yield one


def _full(lines: Iterable[str], where: str) -> Iterator[str]:
    """The lines, none of them empty: every later answer would go to the wrong text."""
    n_read = 0
    for n_read, line in enumerate(lines, start=1):
        problem = line_problem(line, f"{where}, line {n_read}")
        if problem is not None:
            raise UserError(problem)
        yield line
    if not n_read:
        raise UserError(f"There is nothing to translate: {where} is empty.")


def _write_all(found: Sequence[Translation], options: argparse.Namespace) -> None:
    scores = _score(found, options.references) if options.references else None
    if options.out is not None:
        # a line break in an output would move all later ones away from their texts
        lines = (" ".join(one.output.splitlines()) for one in found)
        write_text(Path(options.out), "".join(f"{line}\n" for line in lines))
        say([f"{len(found)} texts translated: {options.out}."])
    if options.json:
        print_json({"translations": [asdict(one) for one in found], "scores": scores})
        return
    if options.out is None:
        print_lines(*(one.output for one in found))
    if scores is not None:
        print_translation_scores(scores)


def _score(found: Sequence[Translation], files: Sequence[Path]) -> dict[str, Any]:
    columns = [list(lines_of(file)) for file in files]
    for file, lines in zip(files, columns, strict=True):
        if len(lines) != len(found):
            raise UserError(f"{file} has {len(lines)} lines for {len(found)} texts.")
    references = list(zip(*columns, strict=True))
    return score_translations([one.output for one in found], references).as_json()


def _explain(translator: Translator, found: Translation, options: argparse.Namespace) -> None:
    attention, file = explain_translation(translator, found), options.explain
    if file.suffix == ".json":
        write_text(file, to_json(attention.as_json()) + "\n")
    else:
        write_bytes(file, render_figure(draw_source_attention(attention), file.suffix[1:]))
    say([f"Written to {file}."])
    if options.json:
        print_json(attention.as_json())
    else:
        print_lines(found.output)


def interpret(options: argparse.Namespace) -> None:
    translator = Translator.load(options.model, device=options.device)
    judge = None
    if options.judge != EVERY:
        judge = Predictor.load(options.judge, device=options.device)
    found = interpreting.interpret(options.texts, translator, judge, beams=options.beams)
    cut = [one.text for one in found if one.truncated]
    say([f"The end of a text was not seen, it is too long: {text:.60}" for text in cut])
    if options.json:
        print_json([one.as_json() for one in found])
        return
    for one in found:
        meaning = one.meaning or f"{interpreting.SAME} ({one.why_same})"
        print_lines(one.text, f"  {meaning}")
