"""`litotes encoders list | get NAME [--to FOLDER] | check [NAME]`"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from litotes.encoder.fetching import Fetched

ABOUT = """\
Lists the encoders that have a name, fetches one (once; then it needs no network), or checks that
what is here is whole and computes.
"""
EXAMPLE = "litotes encoders get mpnet"
USES = ("json",)


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", choices=("list", "get", "check"), help="what to do")
    parser.add_argument(
        "name", nargs="?", metavar="NAME", help="an encoder (check: all that are here)"
    )
    parser.add_argument(
        "--to",
        type=Path,
        metavar="FOLDER",
        help="get: put it there, to be named by its folder (default: the user's data folder)",
    )
    parser.add_argument(
        "--hub",
        action="store_true",
        help="get: the same files from the Hugging Face Hub, into its cache",
    )


def run(options: argparse.Namespace) -> None:
    from litotes.core.errors import UserError

    if options.action != "get" and (options.to is not None or options.hub):
        raise UserError("--to and --hub go with `litotes encoders get` alone.")
    if options.action == "list":
        if options.name is not None:
            raise UserError("`litotes encoders list` takes no name: it lists all.")
        _list(options)
    elif options.action == "check":
        _check(options)
    else:
        _get(options)


def _list(options: argparse.Namespace) -> None:
    from litotes.cli.display import print_json, print_table
    from litotes.encoder.pretrained import named_encoders

    encoders = named_encoders()
    if options.json:
        print_json(encoders)
        return
    rows = []
    for encoder in encoders:
        size = f"not fetched ({encoder['download_bytes'] / 1e6:.0f} MB)"
        rows.append((encoder["name"], encoder["about"], encoder["folder"] or size))
    print_table(("encoder", "", "where"), rows)


def _get(options: argparse.Namespace) -> None:
    from litotes.cli.display import print_json, print_lines

    fetched = _fetch(options)
    if options.json:
        content = {"name": fetched.name, "folder": str(fetched.folder)}
        print_json(content | {"downloaded_bytes": fetched.n_downloaded, "verified": True})
        return
    state = "already there" if fetched.was_there else "fetched"
    name = fetched.name if options.to is None else str(fetched.folder)
    print_lines(
        f"{fetched.name} is in {fetched.folder}: {state}, verified.",
        f"Use it: litotes train RECIPE --set model.encoder={name}",
    )


def _fetch(options: argparse.Namespace) -> Fetched:
    from litotes.cli.display import progress, say
    from litotes.core.errors import UserError
    from litotes.core.registry import pick
    from litotes.encoder.fetching import (
        BUNDLED,
        FETCHABLE,
        Fetched,
        fetch_encoder,
        fetch_from_hub,
        installed_folder,
    )
    from litotes.encoder.pretrained import check_encoder

    name, to = options.name, options.to
    if name is None:
        raise UserError("Say which encoder: `litotes encoders list` names them.")
    pick(FETCHABLE, name, "encoder")
    if to is not None and options.hub:
        raise UserError("--hub puts an encoder into the Hub's cache: leave out --to.")
    if name in BUNDLED and to is None and installed_folder(name) is not None:
        return Fetched(name, Path(check_encoder(name)["folder"]), 0)
    if options.hub:
        return fetch_from_hub(name)
    try:
        with progress() as watch:
            return fetch_encoder(name, to, announce=lambda words: say([words]), watch=watch)
    except UserError as error:
        # what writes files speaks of --out, as other commands have it
        raise UserError(str(error).replace("--out", "--to")) from error


def _check(options: argparse.Namespace) -> None:
    from litotes.cli.display import print_json, print_lines
    from litotes.core.numbers import counted
    from litotes.encoder.pretrained import check_encoder, named_encoders

    names = [options.name]
    if options.name is None:
        names = [one["name"] for one in named_encoders() if one["folder"] is not None]
    checked = [check_encoder(name) for name in names]
    if options.json:
        print_json(checked)
        return
    for one in checked:
        print_lines(
            f"{one['name']} is whole: {counted(one['files_verified'], 'file')} verified in"
            f" {one['folder']}; a sentence of {one['states'][0]} pieces gives states of width"
            f" {one['states'][1]}."
        )
