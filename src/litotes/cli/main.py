"""`litotes COMMAND …`: commands.toml says what commands there are; the chosen one is imported.

Exit code 0; 2 for a user's mistake, reported in one line; 1 for a bug.
"""

from __future__ import annotations

import argparse
import os
import sys
import threading
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from itertools import takewhile
from pathlib import Path
from typing import Any, NoReturn

from litotes.cli import options as types
from litotes.cli.display import abandon_streams, flush_out, prepare_streams, say, visible
from litotes.cli.start import paused_collection
from litotes.core.errors import ReaderGone, UserError, require_extra
from litotes.core.registry import unknown_name
from litotes.core.version import __version__

TABLES = Path(__file__).with_name("commands.toml").read_text("utf-8").split("\n\n[")


def read_tables(holds: Callable[[str], bool]) -> dict[str, Any]:
    """The tables of commands.toml whose first line holds. To read all of them takes 20 ms, which
    those who only want an answer would wait for.
    """
    return tomllib.loads("\n\n[".join(["", *filter(holds, TABLES[1:])]))


COMMANDS = read_tables(lambda table: not table.startswith("shared") and "options]" not in table)
"""By name, which may have two words; without their options."""
GROUPS: dict[str, str] = COMMANDS.pop("groups")

LAST = ("--runtime", "--precision", "--verbose", "--json", "--seed", "--out", "--device")
"""Options of many commands, shown after those of its own."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Parses the arguments, runs the command, and reports a user's mistake in one line."""
    prepare_streams()
    try:
        options = parse(sys.argv[1:] if arguments is None else arguments)
        code = _run(options)
    finally:
        abandon_streams()
    if arguments is None and (_computes_for_no_one() or _holds_a_model_only(options.command)):
        os._exit(code)
    return code


def _run(options: argparse.Namespace) -> int:
    command = COMMANDS[options.command]
    try:
        check_together(options)
        if "needs" in command:
            require_extra(command["needs"], f"`litotes {options.command}`")
        if command.get("sleeps", False):
            from litotes.core.machine import sleep_while_waiting  # not needed to show --help

            sleep_while_waiting()  # before the command's module imports torch
        module, _, function = command["run"].partition(":")
        with paused_collection():
            found = getattr(import_module(module), function)
        found(options)
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


def _computes_for_no_one() -> bool:
    """Tells whether texts are computed that no one waits for: Python would, and a second Ctrl-C
    would end it with a traceback.
    """
    from litotes.core.machine import STREAM_THREADS

    return any(thread.name.startswith(STREAM_THREADS) for thread in threading.enumerate())


def _holds_a_model_only(command: str) -> bool:
    """Tells whether nothing is left to do but to take the model down, an eighth of the time that a
    first answer takes: everything is written, and there is neither torch nor another process.
    """
    is_light = not {"torch", "ray", "multiprocessing"} & set(sys.modules)
    return command == "predict" and is_light and "onnxruntime" in sys.modules


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """The options of the command that the arguments begin with; `command` is its name."""
    for n_words in (2, 1):
        name = " ".join(arguments[:n_words])
        if name in COMMANDS:
            return CommandParser(name).parse(arguments[n_words:])
    return _help(arguments)


def _help(arguments: Sequence[str]) -> NoReturn:
    """`litotes --help`, `litotes hub --help`, or a command that is not there."""
    above = f"{arguments[0]} " if arguments else ""
    names = {name.removeprefix(above): name for name in COMMANDS if name.startswith(above)}
    if above and names:
        arguments = arguments[1:]
    else:
        above, names = "", {name: name for name in COMMANDS}
    parser = Parser(
        prog=f"litotes {above}".strip(),
        usage="%(prog)s COMMAND …",
        description="\n".join(_overview(names)),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"litotes {__version__}")
    if arguments and not arguments[0].startswith("-"):
        parser.error(unknown_name(arguments[0], names, "command"))
    parser.parse_args(arguments)
    parser.error("name a command; --help lists them.")


def _overview(names: Mapping[str, str]) -> Iterator[str]:
    """The commands of each group, with what they do."""
    if len(names) == len(COMMANDS):
        yield "Sentiment and sarcasm across varieties of English."
    for group, title in GROUPS.items():
        lines = [
            f"  {short:<14} {COMMANDS[name]['summary']}"
            for short, name in names.items()
            if COMMANDS[name]["group"] == group
        ]
        if lines:
            yield from (f"\n{title}:", *lines)


class Parser(argparse.ArgumentParser):
    """Its errors quote the arguments, which may hold anything, as a file's name may."""

    def error(self, message: str) -> NoReturn:
        super().error(visible(message))


class CommandParser(Parser):
    """The parser of one command, made from its entry in commands.toml."""

    def __init__(self, name: str) -> None:
        command = COMMANDS[name]
        super().__init__(
            prog=f"litotes {name}",
            description=command["about"],
            epilog=f"example:\n  {command['example']}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        self.set_defaults(command=name, parser=self)
        sections: dict[str, Any] = {}
        for title, flags in command.get("sections", {}).items():
            sections |= dict.fromkeys(flags, self.add_argument_group(title))
        for key, option in options_of(name).items():
            flag, _, metavar = key.partition(" ")
            add_option(sections.get(flag, self).add_argument, flag, metavar, option)

    def parse(self, arguments: Sequence[str]) -> argparse.Namespace:
        for word in takewhile(lambda word: word != "--", arguments):
            flag = word.partition("=")[0]
            known = self._option_string_actions
            if flag.startswith("--") and " " not in flag and flag not in known:
                self.error(unknown_name(flag, known, "option"))
        return self.parse_args(arguments)


def check_together(options: argparse.Namespace) -> None:
    """Refuses options that do nothing without others, or that contradict one another."""
    parser, command = options.parser, COMMANDS[options.command]
    actions = {one.metavar: one for one in parser._actions if not one.option_strings}
    actions |= parser._option_string_actions

    def is_given(key: str) -> bool:
        flag, _, value = key.partition(" ")
        found = getattr(options, actions[flag].dest)
        return found == value if value else found not in (None, False, [], actions[flag].default)

    for key in filter(is_given, command.get("needs_also", {})):
        if missing := [other for other in command["needs_also"][key] if not is_given(other)]:
            raise UserError(f"{key} needs {' and '.join(missing)}: add it, or leave {key} out.")
    for key in filter(is_given, command.get("excludes", {})):
        if others := list(filter(is_given, command["excludes"][key])):
            raise UserError(f"{key} and {others[0]} contradict each other: give one, not both.")


def options_of(name: str) -> dict[str, dict[str, Any]]:
    """The options of a command, by what is written for them: "--model M"."""
    key = f'"{name}"' if " " in name else name
    tables = read_tables(lambda table: table.startswith(("shared]", f"{key}.options]")))
    shared, own = tables.pop("shared"), tables.get(name, {}).get("options", {})
    used = {key: shared[key] for key in shared if key.split()[0] in COMMANDS[name]["uses"]}
    found = {key: used[key] for key in used if not key.startswith(LAST)} | own | used
    for key in shared:  # a script may give these to every command
        if key.startswith(("--seed", "--device")) and key not in found:
            found[key] = {**_table(shared[key]), "help": argparse.SUPPRESS}
    return {key: _table(option) for key, option in found.items()}


def _table(option: str | dict[str, Any]) -> dict[str, Any]:
    return {"help": option} if isinstance(option, str) else option


def add_option(
    add: Callable[..., object], flag: str, metavar: str, option: Mapping[str, Any]
) -> None:
    """Adds an option with the words of commands.toml put into argparse's."""
    settings = dict(option)
    default = settings.get("default")
    if "type" in settings:
        settings["type"] = getattr(types, settings["type"])
    if settings.pop("many", False):
        settings |= {"action": "append", "default": []}
    elif isinstance(default, bool):
        settings["action"] = argparse.BooleanOptionalAction
        settings["help"] += f" (default: {'yes' if default else 'no'})"
    elif default not in (None, []):
        settings["help"] += f" (default: {default})"
    if not flag.startswith("--"):
        flag, metavar = settings.pop("dest", flag.lower()), flag
    if metavar:
        settings["metavar"] = metavar
    elif not {"choices", "action"} & set(settings):
        settings["action"] = "store_true"
    add(flag, **settings)


if __name__ == "__main__":
    sys.exit(main())
