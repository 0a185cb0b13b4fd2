"""`litotes pull OWNER/NAME[@REVISION] --out FOLDER`"""

from __future__ import annotations

import argparse

ABOUT = """\
Pulls a model folder from the Hugging Face Hub into a new folder. Only safetensors, JSON and text
are fetched; what decides answers is checked against the manifest.
"""
EXAMPLE = "litotes pull OWNER/mine --out runs/mine"
USES = ("json", "out")


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "name", metavar="OWNER/NAME", help="with @REVISION, a commit or branch (default: main)"
    )


def run(options: argparse.Namespace) -> None:
    from litotes.cli.display import print_json, print_lines, progress, say
    from litotes.core.errors import UserError
    from litotes.core.numbers import counted
    from litotes.model.hub import pull_model

    if options.out is None:
        raise UserError("Say where the model folder shall be: --out FOLDER.")
    with progress() as watch:
        pulled = pull_model(options.name, options.out, watch=watch)
    say(pulled.notes)
    if options.json:
        print_json(pulled.as_json())
        return
    print_lines(
        f"{counted(len(pulled.files), 'file')} of {pulled.name}@{pulled.revision} in"
        f" {pulled.folder}, checked.",
        f"Use it: litotes predict --model {pulled.folder} TEXT",
    )
