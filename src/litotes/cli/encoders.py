"""`litotes encoders list`, `get NAME [--to FOLDER]` and `check [NAME]`."""

from __future__ import annotations

import argparse
from pathlib import Path

from litotes.cli.display import print_json, print_lines, progress, say
from litotes.cli.tables import print_table
from litotes.core.errors import UserError
from litotes.core.numbers import counted
from litotes.core.registry import pick
from litotes.encoder.fetching import (
    BUNDLED,
    FETCHABLE,
    Fetched,
    fetch_encoder,
    fetch_from_hub,
    installed_folder,
)
from litotes.encoder.pretrained import check_encoder, named_encoders


def list_encoders(options: argparse.Namespace) -> None:
    encoders = named_encoders()
    if options.json:
        print_json(encoders)
        return
    rows = []
    for encoder in encoders:
        size = f"not fetched ({encoder['download_bytes'] / 1e6:.0f} MB)"
        rows.append((encoder["name"], encoder["about"], encoder["folder"] or size))
    print_table(("encoder", "", "where"), rows)


def get(options: argparse.Namespace) -> None:
    fetched = _fetch(options.name, options.to, from_hub=options.hub)
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


def _fetch(name: str, to: Path | None, *, from_hub: bool) -> Fetched:
    pick(FETCHABLE, name, "encoder")
    if name in BUNDLED and to is None and installed_folder(name) is not None:
        return Fetched(name, Path(check_encoder(name)["folder"]), 0)
    if from_hub:
        return fetch_from_hub(name)
    try:
        with progress() as watch:
            return fetch_encoder(name, to, announce=lambda words: say([words]), watch=watch)
    except UserError as error:
        # what writes files speaks of --out, as other commands have it
        raise UserError(str(error).replace("--out", "--to")) from error


def check(options: argparse.Namespace) -> None:
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
