"""`litotes translate [TEXT…] --model M [--file F]`"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from litotes.cli.lean_torch import lean_torch
from litotes.cli.numbers import beams, penalty
from litotes.core.machine import sleep_while_waiting

if TYPE_CHECKING:
    from litotes.training.translation import Translation, Translator

ABOUT = """\
Turns texts into others by a model that `litotes train` made with kind = "translation": texts typed
here, lines of a file, or lines on stdin as they come. Scores them where references are given.
"""
EXAMPLE = 'litotes translate "Ein Hund rennt." --model runs/de-en --explain why.svg'
USES = ("json", "out", "device")


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "texts", nargs="*", metavar="TEXT", help="without any, lines are read from --file or stdin"
    )
    parser.add_argument("--model", required=True, metavar="M", help="a translation model's folder")
    parser.add_argument("--file", type=Path, metavar="F", help="a text a line, .gz or not")
    parser.add_argument(
        "--references",
        type=Path,
        action="append",
        default=[],
        metavar="F",
        help="what should come out, a line for each text: BLEU and chrF; may be given again",
    )
    parser.add_argument(
        "--beams",
        type=beams,
        metavar="N",
        help="hypotheses kept at a time; 1: the best piece at every step (default: the recipe's)",
    )
    parser.add_argument(
        "--length-penalty",
        type=penalty,
        metavar="X",
        help="0 favours short texts (default: the recipe's)",
    )
    parser.add_argument(
        "--explain",
        type=Path,
        metavar="PATH",
        help="write the attention to the source of a single text, .svg, .png or .json",
    )


def run(options: argparse.Namespace) -> None:
    sleep_while_waiting()  # torch, imported below, would have them spin
    _check(options)
    with lean_torch():
        from litotes.training.translation import Translator

        translator = Translator.load(options.model, device=options.device)
    if options.explain is not None:
        _explain(translator, options)
        return
    found = _tell_cut(_translate(translator, options))
    if options.json or options.out is not None or options.references:
        _write_all(list(found), options)
        return
    from litotes.cli.display import visible
    from litotes.cli.streams import flush_out, write_out

    for one in found:
        write_out(f"{visible(one.output)}\n")
        flush_out()


def _check(options: argparse.Namespace) -> None:
    from litotes.core.errors import UserError, require_extra

    if options.texts and options.file is not None:
        raise UserError("Give texts or --file, not both.")
    if options.references:
        require_extra("translate", "--references")
    if options.explain is None:
        return
    if len(options.texts) != 1:
        raise UserError("--explain shows one text: give exactly one.")
    if options.out is not None or options.references:
        raise UserError("--explain names its own file and scores nothing: leave the others out.")
    if options.explain.suffix not in (".svg", ".png", ".json"):
        raise UserError(f"{options.explain}: --explain writes .svg, .png or .json.")


def _translate(translator: Translator, options: argparse.Namespace) -> Iterator[Translation]:
    settings = {"beams": options.beams, "length_penalty": options.length_penalty}
    if options.texts:
        return iter(translator.translate(options.texts, **settings))
    if options.file is not None:
        from litotes.data.parallel import lines_of

        return translator.stream(_full(lines_of(options.file), str(options.file)), **settings)
    # a person who types waits for each answer
    at_once = 1 if sys.stdin.isatty() else None
    return translator.stream(_full(_stdin(), "stdin"), at_once=at_once, **settings)


def _tell_cut(found: Iterable[Translation]) -> Iterator[Translation]:
    """The same, and a note for every text whose end was not seen."""
    from litotes.cli.display import say

    for one in found:
        if one.truncated:
            say([f"This text is longer than the model reads, its end was not seen: {one.text:.60}"])
        yield one


def _stdin() -> Iterator[str]:
    for line in sys.stdin:
        yield line.rstrip("\r\n")


def _full(lines: Iterable[str], where: str) -> Iterator[str]:
    """The lines, none of them empty: every later answer would go to the wrong text."""
    from litotes.core.errors import UserError
    from litotes.data.tables.rows import character_problem

    n_read = 0
    for n_read, line in enumerate(lines, start=1):
        place = f"{where}, line {n_read}"
        problem = character_problem([line], place)
        if not line.strip():
            problem = f"{place} is empty: give it a text, or take it out."
        if problem is not None:
            raise UserError(problem)
        yield line
    if not n_read:
        raise UserError(f"There is nothing to translate: {where} is empty.")


def _write_all(found: Sequence[Translation], options: argparse.Namespace) -> None:
    from litotes.cli.display import print_json, print_lines, say
    from litotes.cli.translation_scores import print_translation_scores
    from litotes.core.storage import write_text

    scores = _score(found, options)
    if options.out is not None:
        write_text(Path(options.out), "".join(f"{_in_one_line(one)}\n" for one in found))
        say([f"{len(found)} texts translated: {options.out}."])
    if options.json:
        answers = [asdict(one) for one in found]
        print_json({"translations": answers, "scores": scores})
        return
    if options.out is None:
        print_lines(*(one.output for one in found))
    if scores is not None:
        print_translation_scores(scores)


def _in_one_line(translation: Translation) -> str:
    """A break in an output would move all later ones away from their texts."""
    return " ".join(translation.output.splitlines())


def _score(found: Sequence[Translation], options: argparse.Namespace) -> dict[str, object] | None:
    if not options.references:
        return None
    from litotes.core.errors import UserError
    from litotes.data.parallel import lines_of
    from litotes.training.translation import score_translations

    columns = [list(lines_of(file)) for file in options.references]
    for file, lines in zip(options.references, columns, strict=True):
        if len(lines) != len(found):
            raise UserError(f"{file} has {len(lines)} lines for {len(found)} texts.")
    references = list(zip(*columns, strict=True))
    return score_translations([one.output for one in found], references).as_json()


def _explain(translator: Translator, options: argparse.Namespace) -> None:
    from litotes.cli.display import print_json, print_lines, say
    from litotes.core.figures import render_figure
    from litotes.core.json_text import to_json
    from litotes.core.storage import write_bytes, write_text
    from litotes.training.translation.attention import (
        draw_source_attention,
        explain_translation,
    )

    (translation,) = _tell_cut(_translate(translator, options))
    attention = explain_translation(translator, translation)
    if options.explain.suffix == ".json":
        write_text(options.explain, to_json(attention.as_json()) + "\n")
    else:
        picture = render_figure(draw_source_attention(attention), options.explain.suffix[1:])
        write_bytes(options.explain, picture)
    say([f"Written to {options.explain}."])
    if options.json:
        print_json(attention.as_json())
    else:
        print_lines(translation.output)
