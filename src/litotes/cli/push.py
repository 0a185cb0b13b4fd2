"""`litotes push --model RUN --to OWNER/NAME`"""

from __future__ import annotations

import argparse

ABOUT = """\
Pushes a model folder with its card to the Hugging Face Hub, as one commit. Only safetensors, JSON
and text travel, checked against the manifest.
"""
EXAMPLE = "litotes push --model runs/mine --to OWNER/mine"
USES = ("json",)


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--model", required=True, metavar="RUN", help="a model folder")
    parser.add_argument(
        "--to", required=True, metavar="OWNER/NAME", help="made, private, if it is not there"
    )
    parser.add_argument(
        "--public", action="store_true", help="if it has to be made, for everybody to read"
    )
    parser.add_argument("--message", metavar="TEXT", help="of the commit")


def run(options: argparse.Namespace) -> None:
    from litotes.cli.display import print_json, print_lines, say
    from litotes.core.numbers import counted
    from litotes.model.hub import push_model

    pushed = push_model(
        options.model, options.to, private=not options.public, message=options.message
    )
    if pushed.left_out:
        say([f"Stayed here: {', '.join(pushed.left_out)}."])
    if options.json:
        print_json(pushed.as_json())
        return
    print_lines(
        f"Pushed {counted(len(pushed.files), 'file')} to {pushed.name}, commit {pushed.revision}.",
        f"Pull it: litotes pull {pushed.name}@{pushed.revision} --out FOLDER",
    )
