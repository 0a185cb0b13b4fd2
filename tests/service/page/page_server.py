"""A service to open the page at."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable

import uvicorn
from playwright.sync_api import Page

from litotes.prediction.predictor import Predictor
from litotes.service.app import create_app
from litotes.service.settings import ServiceSettings

Opens = Callable[..., Page]


class Server:
    """A service in a thread of its own that can go away and come back on the same port."""

    def __init__(
        self,
        predictors: dict[str, Predictor],
        *,
        token: str | None = None,
        allowed_origins: tuple[str, ...] = (),
    ) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.address = f"http://127.0.0.1:{self.port}/"
        self._predictors = predictors
        self._settings = ServiceSettings(
            port=self.port, token=token, allowed_origins=allowed_origins
        )

    def start(self) -> None:
        app = create_app(self._predictors, settings=self._settings)
        config = uvicorn.Config(
            app,
            host="127.0.0.1",
            port=self.port,
            log_level="critical",
            ws="none",
            timeout_graceful_shutdown=1,
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, daemon=True)
        self._thread.start()
        while not self._server.started:
            assert self._thread.is_alive()
            time.sleep(0.02)

    def stop(self) -> None:
        self._server.should_exit = True
        self._thread.join(10)
        assert not self._thread.is_alive()
