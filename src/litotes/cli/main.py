"""`litotes COMMAND …`: one short file a command, heavy imports only inside the one that runs.

Exit code 0; 2 for a user's mistake, told in one line; 1 for a bug.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from litotes.cli import (
    analyze,
    audit,
    bench,
    coverage,
    evaluate,
    explain,
    export,
    listing,
    matrix,
    predict,
    prune,
    score,
    serve,
    study,
    submit,
    train,
)
from litotes.cli.numbers import seed
from litotes.core.errors import UserError
from litotes.core.version import __version__

COMMANDS = (
    predict,
    explain,
    train,
    evaluate,
    matrix,
    study,
    prune,
    export,
    analyze,
    audit,
    coverage,
    score,
    submit,
    serve,
    bench,
    listing,
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Parses, runs, and turns a user's mistake into one line."""
    options = make_parser().parse_args(arguments)
    try:
        options.run(options)
    except UserError as error:
        print(f"litotes: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:
        sys.stderr.close()  # the reader of our output has gone; there is nobody to tell
        return 0
    except OSError as error:  # a full disk, a folder that may not be written, a file in the way
        print(
            f"litotes: {error.filename or 'the system'}: {error.strerror or error}. Check the path"
            " given, e.g. --out.",
            file=sys.stderr,
        )
        return 2
    except KeyboardInterrupt:
        print("litotes: interrupted.", file=sys.stderr)
        return 130
    return 0


def make_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="litotes",
        description=(
            "Sentiment and sarcasm across varieties of English: train, test, compare, prune,"
            " explain, predict."
        ),
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"litotes {__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    for command in COMMANDS:
        command.add_to(commands, common_options())
    return parser


def common_options() -> argparse.ArgumentParser:
    """What every command takes."""
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument(
        "--json",
        action="store_true",
        help="print one JSON document on stdout; progress goes to stderr",
    )
    common.add_argument("--seed", type=seed, metavar="N", help="fixes all that is random")
    common.add_argument("--out", metavar="PATH", help="where to write")
    common.add_argument(
        "--device", metavar="NAME", help="cpu or cuda; the default is cuda where there is one"
    )
    return common


if __name__ == "__main__":
    sys.exit(main())
