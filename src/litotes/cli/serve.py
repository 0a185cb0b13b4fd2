"""`litotes serve [--model M …] [--port 8000]`"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from litotes.cli.display import abandon_streams, say
from litotes.cli.inputs import given
from litotes.core.errors import UserError, require_extra
from litotes.core.values import WORD_KINDS
from litotes.model.builtin import BUILTIN, resolve_model
from litotes.model.folder import open_model
from litotes.service.app import create_app
from litotes.service.models import check_model_name, load_models
from litotes.service.server import bind_socket, listener_url, run_server
from litotes.service.settings import ServiceSettings
from litotes.service.state import Service

if TYPE_CHECKING:
    from litotes.prediction.predictor import Predictor
    from litotes.training.tagging.tagger import Tagger

_TOKEN = "LITOTES_TOKEN"


def serve(options: argparse.Namespace) -> None:
    os.environ["HF_HUB_OFFLINE"] = "1"  # whatever a model folder says, nothing is fetched
    # the cores are busy with texts; more threads would only take turns
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
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
    say(dict.fromkeys(note for predictor in models.values() for note in predictor.notes))
    return models


def locus_loader(options: argparse.Namespace) -> Callable[[], Tagger] | None:
    """Loads the model of --highlight-model; a wrong folder is reported before it starts."""
    if options.highlight_model is None:
        return None
    require_extra("train", "--highlight-model")
    folder = open_model(options.highlight_model, kinds=WORD_KINDS)

    def load() -> Tagger:
        from litotes.training.tagging.tagger import Tagger  # with torch

        return Tagger.load(folder, device=options.device)

    return load


def _start_notes(folders: Iterable[str], settings: ServiceSettings) -> Iterator[str]:
    if settings.is_public and settings.token is None:
        yield (
            f"Anyone who can reach {settings.host} can send requests: set --token-file F, or listen"
            " on 127.0.0.1."
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
    settings = given(options, ServiceSettings)
    if "seconds" in settings:  # the wait for a body is part of them
        settings["body_seconds"] = min(settings["seconds"], ServiceSettings.body_seconds)
    for name in ("allowed_hosts", "allowed_origins"):
        settings[name] = tuple(settings[name])
    return ServiceSettings(**settings, token=_read_token(options.token_file))


def _read_token(file: Path | None) -> str | None:
    """From a file or the environment: any user of the machine can read a process's arguments."""
    if file is None:
        return os.environ.get(_TOKEN)  # an empty one is an error: a token was meant to be set
    try:
        return file.read_text("ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(
            f"--token-file {file} cannot be read. Make one, e.g. `openssl rand -hex 32 > {file}`."
        ) from error
