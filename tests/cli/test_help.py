"""The table of commands: each says what it does, shows an example that works, offers only what does
something, and names what is near where a word is wrong.
"""

from __future__ import annotations

import shlex
from importlib import import_module

import pytest

from litotes.cli.main import COMMANDS, GROUPS, LAST, main, options_of, parse
from litotes.core.errors import EXTRAS


def shown(capsys: pytest.CaptureFixture[str], *arguments: str, code: int) -> str:
    """What the parser says, which ends the process."""
    capsys.readouterr()
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == code
    said = capsys.readouterr()
    return said.err if code else said.out


@pytest.mark.parametrize("name", COMMANDS)
def test_help_says_what_a_command_does_and_shows_it(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    command = COMMANDS[name]
    said = shown(capsys, *name.split(), "--help", code=0)
    assert 1 <= len(command["about"].strip().splitlines()) <= 2
    assert all(len(line) <= 100 for line in command["about"].splitlines())
    assert len(command["summary"]) <= 60
    assert command["about"] in said
    assert command["example"] in said
    program, *arguments = shlex.split(command["example"])
    assert program == "litotes"
    assert parse(arguments).command == name
    for option in LAST:
        assert (f"{option} " in said or f"{option}\n" in said) is (option in command["uses"]) or (
            option == "--out" and name == "hub pull"
        )


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_names_a_function_and_an_extra_that_exist(name: str) -> None:
    command = COMMANDS[name]
    module, function = command["run"].split(":")
    assert callable(getattr(import_module(module), function))
    assert command.get("needs") in {None, *EXTRAS}
    assert command["group"] in GROUPS


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_has_help_and_a_wrong_one_is_answered_with_the_nearest(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    options = options_of(name)
    assert all(isinstance(option, str) or option["help"] for option in options.values())
    for key in options:
        flag = key.split()[0]
        if flag.startswith("--"):
            said = shown(capsys, *name.split(), f"{flag}x", "1", code=2)
            assert f"Did you mean {flag!r}" in said


def test_the_overview_has_all_commands_in_groups(capsys: pytest.CaptureFixture[str]) -> None:
    said = shown(capsys, "--help", code=0)
    places = [said.index(f"\n{title}:") for title in GROUPS.values()]
    assert places == sorted(places)
    for name, command in COMMANDS.items():
        assert f"  {name} " in said
        assert command["summary"] in said


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["predcit", "tea"], "no command 'predcit'. Did you mean 'predict'?"),
        (["push", "runs/mine"], "Did you mean 'hub push'?"),
        (["hub", "pusch"], "Did you mean 'push'?"),
        (["hub"], "--help"),
        ([], "--help"),
        (["audit"], "--data"),
        (["audit", "--data=sampler", "--jsn"], "Did you mean '--json'?"),
        (["matrix", "r.toml", "--seeds", "0"], "is not"),
        (["bench", "--rounds", "-1"], "is not"),
        (["train", "r.toml", "--seed", "99999999999999999999"], "is not"),
        (["train", "r.toml", "--seed", "many"], "is not"),
        (["serve", "--port", "70000"], "is not"),
        (["exits", "--model", "m", "--data", "d", "--max-disagreement", "0"], "above 0"),
        (["exits", "--model", "m", "--data", "d", "--confidence", "1"], "below 1"),
        (["prune", "--model", "m", "--data", "d", "--loss", "nan"], "is not"),
        (["predict", "--columns", "id,,x"], "comma-separated"),
        (["predict", "--out", ""], "empty"),
        (["predict", "--out", "/"], "root"),
    ],
)
def test_a_wrong_word_is_reported_and_ends_with_code_2(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert words in shown(capsys, *arguments, code=2)


def test_a_text_may_begin_like_an_option() -> None:
    assert parse(["predict", "-- well, fine"]).texts == ["-- well, fine"]
    assert parse(["predict", "--", "--model"]).texts == ["--model"]


def test_options_take_what_the_table_says() -> None:
    words = "prune --model m --data d --factors 1.5,3 --no-fuse --exclude none --cross-fit 2"
    options = parse(words.split())
    assert (options.targets, options.fuse, options.restore) == ((1.5, 3.0), False, True)
    assert (options.exclude, options.folds, options.loss) == ((), 2, 0.5)
    assert parse(["prune", "--model", "m", "--data", "d"]).targets == (1.5, 2.0, 2.5, 3.0)
    assert parse(["exits", "--model", "m", "--data", "d", "--layers", "2,3"]).layers == (2, 3)
    assert parse(["predict", "--columns", "id,region"]).columns == ("id", "region")
    assert parse(["coverage", "--data", "a", "b", "--data", "c"]).data == ["a", "b", "c"]


def test_options_that_do_nothing_are_taken_where_that_is_harmless(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["list", "heads", "--seed", "1", "--device", "cpu"]) == 0
    assert "--out" in shown(capsys, "list", "heads", "--out", "somewhere", code=2)
