"""`litotes serve [--model M …] [--port 8000]`"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from litotes.cli.numbers import count
from litotes.cli.options import add_runtime
from litotes.cli.streams import abandon_streams

if TYPE_CHECKING:
    from litotes.prediction.predictor import Predictor
    from litotes.service.settings import ServiceSettings
    from litotes.service.state import Service
    from litotes.training.tagging.tagger import Tagger

_TOKEN = "LITOTES_TOKEN"

_LIMITS = {
    "--texts": ("max_texts", "most texts of a request (default: 64)"),
    "--characters": ("max_characters", "most characters of a text (default: 10,000)"),
    "--explained-characters": (
        "max_explained_characters",
        "of a text to explain (default: 2,000)",
    ),
    "--body-bytes": ("max_body_bytes", "most bytes of a request (default: 1,000,000)"),
    "--seconds": ("seconds", "until a request is given up (default: 30)"),
    "--queue": (
        "queue_texts",
        "texts that may wait, however fast they are answered (default: 1,024)",
    ),
    "--batch": ("batch_texts", "most texts computed together (default: 32)"),
    "--drain-seconds": ("drain_seconds", "from SIGTERM to the end (default: 10)"),
}
"""Options that are settings of the service: the setting, and the line in the help."""

ABOUT = """\
Answers over HTTP, with limits, metrics and health checks, and with a page on which people can
try the model and see why.
"""
EXAMPLE = "litotes serve --model runs/mine --port 8000"
USES = ("device",)


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--model",
        action="append",
        metavar="M",
        help="FOLDER or NAME=FOLDER, several times for several (default: the built-in one)",
    )
    parser.add_argument(
        "--highlight-model",
        metavar="M",
        help="a tagging or span model, whose words explanations mark: where the sarcasm sits",
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
    add_runtime(parser, default="onnx on a CPU where there is an export")
    _add_access_options(parser)
    for option, (setting, summary) in _LIMITS.items():
        parser.add_argument(option, dest=setting, type=count, metavar="N", help=summary)


def _add_access_options(parser: argparse.ArgumentParser) -> None:
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


def run(options: argparse.Namespace) -> None:
    from litotes.cli.display import say

    os.environ["HF_HUB_OFFLINE"] = "1"  # whatever a model folder says, nothing is fetched
    # the cores are busy with texts; more threads would only take turns
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    from litotes.service.app import create_app
    from litotes.service.models import load_models
    from litotes.service.server import bind_socket, listener_url, run_server

    folders, settings = model_folders(options.model), read_settings(options)
    listener = bind_socket(settings.host, settings.port)
    say(_start_notes(folders, settings))
    app = create_app(
        lambda: tell_notes(
            load_models(
                folders,
                device=options.device,
                runtime=options.runtime,
                precision=options.precision,
            )
        ),
        settings=settings,
        load_locus=locus_loader(options),
    )
    run_server(app, listener, when_ready=lambda: say([f"Ready: {listener_url(listener)}"]))
    _exit_if_stuck(app.state.service)


def tell_notes(models: dict[str, Predictor]) -> dict[str, Predictor]:
    """The models, with what the user should know of them told on stderr."""
    from litotes.cli.display import say

    notes: list[str] = []
    for predictor in models.values():
        notes += predictor.notes
    say(dict.fromkeys(notes))
    return models


def locus_loader(options: argparse.Namespace) -> Callable[[], Tagger] | None:
    """Loads the model of --highlight-model; a wrong folder is reported before it starts."""
    if options.highlight_model is None:
        return None
    from litotes.core.errors import require_extra
    from litotes.core.values import WORD_KINDS
    from litotes.model.folder import open_model

    require_extra("train", "--highlight-model")
    folder = open_model(options.highlight_model, kinds=WORD_KINDS)

    def load() -> Tagger:
        from litotes.training.tagging.tagger import Tagger

        return Tagger.load(folder, device=options.device)

    return load


def _start_notes(folders: Iterable[str], settings: ServiceSettings) -> Iterator[str]:
    if settings.is_public and settings.token is None:
        yield (
            f"Anybody who can reach {settings.host} may ask: give --token-file F, or listen on"
            " 127.0.0.1."
        )
    yield f"Loading {', '.join(folders)} …"


def _exit_if_stuck(service: Service) -> None:
    """Ends the process where a thread would keep it alive.

    A write to a pipe that is not read and an explanation under way cannot be interrupted.
    """
    if not service.log.is_stuck:
        abandon_streams()
    if service.log.is_stuck or service.explainer.is_busy:
        os._exit(0)


def model_folders(models: list[str] | None) -> dict[str, Path]:
    """The folders by name, from NAME=FOLDER or FOLDER; None: the built-in model.

    A folder without a name has its own, and a link that of the link.
    """
    from litotes.core.errors import UserError
    from litotes.model.builtin import BUILTIN, resolve_model
    from litotes.service.models import check_model_name

    folders: dict[str, Path] = {}
    for model in models or [BUILTIN]:
        name, equals, folder = model.partition("=")
        if not equals:
            name, folder = os.path.basename(os.path.abspath(model)), model
        check_model_name(name)
        if name in folders:
            raise UserError(
                f"Two models are called {name}: give one of them another name, --model NAME=FOLDER."
            )
        folders[name] = resolve_model(folder)
    return folders


def read_settings(options: argparse.Namespace) -> ServiceSettings:
    from litotes.service.settings import ServiceSettings

    limits = {}
    for setting, _ in _LIMITS.values():
        value = getattr(options, setting)
        if value is not None:
            limits[setting] = value
    if "seconds" in limits:  # the wait for a body is part of them
        limits["body_seconds"] = min(limits["seconds"], ServiceSettings.body_seconds)
    return ServiceSettings(
        host=options.host,
        port=options.port,
        allowed_hosts=tuple(options.allow_host),
        allowed_origins=tuple(options.allow_origin),
        token=_read_token(options.token_file),
        **limits,
    )


def _read_token(file: Path | None) -> str | None:
    """From a file or the environment: any user of the machine can read a process's arguments."""
    from litotes.core.errors import UserError

    if file is None:
        return os.environ.get(_TOKEN)  # an empty one is an error: a token was meant to be set
    try:
        return file.read_text("ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(
            f"--token-file {file} cannot be read. Make one, e.g. `openssl rand -hex 32 > {file}`."
        ) from error
