"""`litotes serve [--model M …] [--port 8000]`"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from litotes.cli.numbers import count

if TYPE_CHECKING:
    from litotes.service.settings import ServiceSettings

_TOKEN = "LITOTES_TOKEN"


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--model",
        action="append",
        metavar="M",
        help="FOLDER or NAME=FOLDER, several times for several (default: the built-in one)",
    )
    parser.add_argument(
        "--host",
        default="127.0.0.1",
        metavar="H",
        help="where to listen (default: 127.0.0.1, this machine alone)",
    )
    parser.add_argument(
        "--port",
        type=int,
        default=8000,
        metavar="N",
        help="0 takes one that is free (default: 8000)",
    )
    parser.add_argument(
        "--runtime",
        choices=("torch", "onnx"),
        help="what computes (default: onnx on a CPU where there is an export)",
    )
    parser.add_argument(
        "--token-file",
        type=Path,
        metavar="F",
        help=f"a file with the token that requests must carry; or set ${_TOKEN}",
    )
    parser.add_argument(
        "--allow-host",
        action="append",
        default=[],
        metavar="NAME",
        help="another name under which it may be asked",
    )
    parser.add_argument(
        "--allow-origin",
        action="append",
        default=[],
        metavar="O",
        help="another page that may ask, https://example.org",
    )
    parser.add_argument(
        "--texts", type=count, metavar="N", help="most texts of a request (default: 64)"
    )
    parser.add_argument(
        "--characters", type=count, metavar="N", help="most characters of a text (default: 10,000)"
    )
    parser.add_argument(
        "--explained-characters",
        type=count,
        metavar="N",
        help="of a text to explain (default: 2,000)",
    )
    parser.add_argument(
        "--body-bytes", type=count, metavar="N", help="most bytes of a request (default: 1,000,000)"
    )
    parser.add_argument(
        "--seconds", type=count, metavar="N", help="until a request is given up (default: 30)"
    )
    parser.add_argument(
        "--queue",
        type=count,
        metavar="N",
        help="texts that may wait, however fast they are answered (default: 1,024)",
    )
    parser.add_argument(
        "--batch", type=count, metavar="N", help="most texts computed together (default: 32)"
    )
    parser.add_argument(
        "--drain-seconds", type=count, metavar="N", help="from SIGTERM to the end (default: 10)"
    )


def run(options: argparse.Namespace) -> None:
    from litotes.core.errors import UserError

    os.environ["HF_HUB_OFFLINE"] = "1"  # whatever a model folder says, nothing is fetched
    # cores are busy with texts; more threads would only change places
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    try:
        from litotes.service.app import create_app
        from litotes.service.server import run_server
    except ImportError as error:
        raise UserError(
            f"Serving needs the package {error.name}: `pip install litotes[serve]`."
        ) from error
    from litotes.cli.display import say
    from litotes.service.listener import bind_socket, listener_url
    from litotes.service.models import load_models

    folders, settings = model_folders(options.model), settings_of(options)
    listener = bind_socket(settings.host, settings.port)
    if settings.is_public and settings.token is None:
        say(
            [
                f"Anybody who can reach {settings.host} may ask: give --token-file F, or listen on"
                " 127.0.0.1."
            ]
        )
    say([f"Loading {', '.join(folders)} …"])
    app = create_app(
        lambda: load_models(folders, device=options.device, runtime=options.runtime),
        settings=settings,
    )
    run_server(app, listener, when_ready=lambda: say([f"Ready: {listener_url(listener)}"]))
    service = app.state.service
    if not service.log.is_stuck:
        sys.stderr.flush()
    # lines nobody reads, an explanation nobody waits for: neither can be interrupted
    if service.log.is_stuck or service.explainer.is_busy:
        os._exit(0)


def model_folders(given: list[str] | None) -> dict[str, Path]:
    """By name; the name of a folder is its own, and that of a link the link's.

    None: the built-in model.
    """
    from litotes.core.errors import UserError
    from litotes.model.builtin import BUILTIN, resolve_model
    from litotes.service.models import check_model_name

    folders: dict[str, Path] = {}
    for one in given or [BUILTIN]:
        name, sign, folder = one.partition("=")
        model = folder if sign else one
        name = check_model_name(name if sign else os.path.basename(os.path.abspath(model)))
        if name in folders:
            raise UserError(
                f"Two models are called {name}: give one of them another name, --model NAME=FOLDER."
            )
        folders[name] = resolve_model(model)
    return folders


def settings_of(options: argparse.Namespace) -> ServiceSettings:
    from litotes.service.settings import ServiceSettings

    given = {
        "max_texts": options.texts,
        "max_characters": options.characters,
        "max_explained_characters": options.explained_characters,
        "max_body_bytes": options.body_bytes,
        "seconds": options.seconds,
        "body_seconds": (
            None if options.seconds is None else min(options.seconds, ServiceSettings.body_seconds)
        ),
        "queue_texts": options.queue,
        "batch_texts": options.batch,
        "drain_seconds": options.drain_seconds,
    }
    return ServiceSettings(
        host=options.host,
        port=options.port,
        allowed_hosts=tuple(options.allow_host),
        allowed_origins=tuple(options.allow_origin),
        token=_token(options.token_file),
        **{name: value for name, value in given.items() if value is not None},
    )


def _token(file: Path | None) -> str | None:
    """From a file or the environment: the arguments of a process can be read by everybody on the
    machine.
    """
    from litotes.core.errors import UserError

    if file is None:
        return os.environ.get(_TOKEN)  # an empty one is refused: somebody meant to give one
    try:
        return file.read_text("ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(
            f"--token-file {file} cannot be read. Make one, e.g. `openssl rand -hex 32 > {file}`."
        ) from error
