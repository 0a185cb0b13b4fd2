"""Every command says in two lines what it does, shows an example that works, and offers only what
does something.
"""

from __future__ import annotations

import shlex
from importlib import import_module

import pytest

from litotes.cli.main import COMMANDS, main, make_parser


@pytest.mark.parametrize("command", COMMANDS)
def test_help_says_what_a_command_does_and_shows_it(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    module = import_module(f"litotes.cli.{command}")
    with pytest.raises(SystemExit) as ended:
        main([command, "--help"])
    assert ended.value.code == 0
    shown = capsys.readouterr().out
    assert 1 <= len(module.ABOUT.strip().splitlines()) <= 2
    assert all(len(line) <= 100 for line in module.ABOUT.splitlines())
    assert module.ABOUT in shown
    assert module.EXAMPLE in shown
    program, *arguments = shlex.split(module.EXAMPLE)
    assert (program, arguments[0]) == ("litotes", command)
    make_parser().parse_args(arguments)
    for option in ("json", "seed", "out", "device"):
        assert (f"--{option} " in shown or f"--{option}\n" in shown) is (option in module.USES)


def test_options_that_do_nothing_are_taken_where_that_is_harmless(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["list", "heads", "--seed", "1", "--device", "cpu"]) == 0
    capsys.readouterr()
    with pytest.raises(SystemExit):
        main(["list", "heads", "--out", "somewhere"])
    assert "--out" in capsys.readouterr().err
