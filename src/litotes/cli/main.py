"""`litotes COMMAND …`: one short file a command, heavy imports only inside the one that runs.

Exit code 0; 2 for a user's mistake, reported in one line; 1 for a bug.
"""

from __future__ import annotations

import argparse
import os
import sys
import threading
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

from litotes.cli.display import say, visible
from litotes.cli.numbers import seed
from litotes.cli.streams import abandon_streams, flush_out, prepare_streams
from litotes.core.errors import ReaderGone, UserError, require_extra
from litotes.core.machine import STREAM_THREADS
from litotes.core.registry import unknown_name
from litotes.core.text import is_utf8
from litotes.core.version import __version__

COMMANDS = {
    "predict": "labels and probabilities for texts",
    "explain": "what an answer rests on, word by word",
    "translate": "texts into others, by an encoder-decoder",
    "interpret": "what a sarcastic text means, plainly said",
    "new": "a recipe for a table of yours, and what to do next",
    "train": "train one classifier",
    "pretrain": "teach an encoder on texts without labels",
    "evaluate": "scores with intervals, by cell",
    "calibrate": "answers that may be unsure, with a promise",
    "matrix": "train on each part, test on every part",
    "study": "a whole grid of runs and one report",
    "distill": "a small student of larger teachers",
    "prune": "the fastest pruning within a loss of macro-F1",
    "exits": "texts that leave early, within a disagreement you allow",
    "export": "an ONNX file with the pruning inside, fast on a CPU",
    "push": "a model folder to the Hugging Face Hub, with its card",
    "pull": "a model folder from the Hugging Face Hub, checked",
    "analyze": "what a model's attention does over a corpus",
    "stress": "which features of a variety change answers",
    "audit": "leaks, duplicates, conflicts, balance",
    "coverage": "how much frequent vocabulary is shared",
    "score": "the ALTA 2026 shared task's metric",
    "submit": "a checked entry to the shared task",
    "serve": "answers over HTTP, with a page to try it",
    "bench": "side by side, ratios in one run",
    "encoders": "which encoders are here, and fetch one",
    "list": "what there is, one line each",
}
"""Each command's line in `litotes --help`; its module in this package has the command's name."""
NEEDS = {
    "new": "train",
    "train": "train",
    "pretrain": "train",
    "matrix": "train",
    "study": "train",
    "distill": "train",
    "prune": "train",
    "exits": "train",
    "export": "train",
    "analyze": "train",
    "stress": "train",
    "bench": "train",
    "encoders": "train",
    "translate": "train",
    "interpret": "train",
    "serve": "serve",
    "push": "hub",
    "pull": "hub",
}
"""The extra without which a command can do nothing. The others work on the plain install; what
needs more by the model or the options it is given says so itself.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Parses the arguments, runs the command, and reports a user's mistake in one line."""
    prepare_streams()
    try:
        parser = make_parser()
        _check_command(parser, sys.argv[1:] if arguments is None else arguments)
        options = parser.parse_args(arguments)
        code = _run(options)
    finally:
        abandon_streams()
    if arguments is None and (_computes_for_nobody() or _holds_a_model_only(options.called)):
        os._exit(code)
    return code


def _computes_for_nobody() -> bool:
    """Whether texts are computed that nobody waits for: Python would, and a second Ctrl-C would end
    it with a traceback.
    """
    return any(thread.name.startswith(STREAM_THREADS) for thread in threading.enumerate())


def _holds_a_model_only(called: str) -> bool:
    """Whether nothing is left to do but to take the model down, an eighth of the time that a
    first answer takes: everything is written, and there is neither torch nor another process.
    """
    is_light = not {"torch", "ray", "multiprocessing"} & set(sys.modules)
    return called == "predict" and is_light and "onnxruntime" in sys.modules


def _check_command(parser: argparse.ArgumentParser, arguments: Sequence[str]) -> None:
    """Answers a command that is not there with the nearest."""
    if arguments and not arguments[0].startswith("-") and arguments[0] not in COMMANDS:
        parser.error(unknown_name(arguments[0], COMMANDS, "command"))


def _run(options: argparse.Namespace) -> int:
    try:
        if options.called in NEEDS:
            require_extra(NEEDS[options.called], f"`litotes {options.called}`")
        options.run(options)
        flush_out()
    except UserError as error:
        say([f"litotes: {error}"])
        return 2
    except ReaderGone:
        return 0
    except OSError as error:  # a full disk, a folder that may not be written, a file in the way
        place, reason = error.filename or "the system", error.strerror or error
        say([f"litotes: {place}: {reason}. Check the path given, e.g. --out."])
        return 2
    except KeyboardInterrupt:
        say(["litotes: interrupted."])
        return 130
    return 0


def make_parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="litotes",
        description=(
            "Sentiment and sarcasm across varieties of English: train, test, compare, prune,"
            " explain, predict."
        ),
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"litotes {__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True, parser_class=CommandParser)
    for name, summary in COMMANDS.items():
        commands.add_parser(name, help=summary, command=name, allow_abbrev=False)
    return parser


class Parser(argparse.ArgumentParser):
    """Its errors quote the arguments, which may hold anything, as a file's name may."""

    def error(self, message: str) -> NoReturn:
        super().error(visible(message))


class CommandParser(Parser):
    """The parser of one command, which imports the command's module only when it is used.

    A command's module defines `add_options(parser)` and `run(options)`, what the command does
    (`ABOUT`), an `EXAMPLE` of it, and which of the common options it `USES`.
    """

    def __init__(self, *, command: str, **settings: Any) -> None:
        layout = argparse.RawDescriptionHelpFormatter
        super().__init__(formatter_class=layout, **settings)
        self._command = command

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Called for the chosen command alone, and once for each `parse_args` above it."""
        if self.get_default("run") is None:
            module = import_module(f"litotes.cli.{self._command}")
            self.description, self.epilog = module.ABOUT, f"example:\n  {module.EXAMPLE}"
            add_common_options(self, module.USES)
            module.add_options(self)
            self.set_defaults(run=module.run, called=self._command)
        return super().parse_known_args(args, namespace)


def add_common_options(parser: argparse.ArgumentParser, uses: Sequence[str]) -> None:
    """The options that commands share.

    uses: those that do something for this command. The others are not offered; --seed and --device
    are taken all the same, so that a script may give them to every command.
    """
    settings: dict[str, dict[str, Any]] = {
        "json": {
            "action": "store_true",
            "help": "print one JSON document on stdout; progress goes to stderr",
        },
        "seed": {"type": seed, "metavar": "N", "help": "fixes all that is random"},
        "out": {"type": _path, "metavar": "PATH", "help": "where to write"},
        "device": {
            "metavar": "NAME",
            "help": "cpu or cuda; the default is cuda where there is one",
        },
    }
    for name, own in settings.items():
        if name in uses:
            parser.add_argument(f"--{name}", **own)
        elif name in ("seed", "device"):
            parser.add_argument(f"--{name}", **(own | {"help": argparse.SUPPRESS}))


def _path(text: str) -> str:
    """A path that is not empty: an empty one, from a variable that is not set, means nothing.

    What we make has a name that every library can open.
    """
    if not text.strip():
        raise argparse.ArgumentTypeError("it is empty: name a file or a folder.")
    if not Path(os.path.realpath(text)).name:
        raise argparse.ArgumentTypeError("it is the root of all folders: choose one of yours.")
    if not is_utf8(text):
        raise argparse.ArgumentTypeError("it is not UTF-8: choose another name.")
    return text


if __name__ == "__main__":
    sys.exit(main())
