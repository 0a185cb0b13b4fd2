"""Runs the service until it is told to stop, and then stops without losing a request.

    SIGTERM  → /ready says 503 and every answer closes its connection; everything is still taken and answered   (_LAME_DUCK_SECONDS)
             → the listener is closed: newcomers are turned away, those in the doorway are let in →
             connections are closed as they become idle; what has been accepted is answered → the
             end, exit code 0, at the latest after drain_seconds; a second signal ends it at once

uvicorn's own way closes the listener on those who stand in it, and closes idle connections on which a
request may be just arriving.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import cast

import uvicorn
from fastapi import FastAPI

from litotes.core.errors import UserError
from litotes.service.listener import bind_error_message, drop_new_connections
from litotes.service.logs import ServiceLogHandler
from litotes.service.protocol import MAX_CONNECTIONS, GuardedProtocol
from litotes.service.state import Service

_LAME_DUCK_SECONDS = 1.0
_ACCEPT_SECONDS = 0.2
_IDLE_SECONDS = 1.0
"""Without a request on a connection, while draining, before it is closed: a client in the middle of
its work asks sooner.
"""
_CUT_SECONDS, _LAST_SECONDS = 1.5, 0.5
"""Before the end: who still waits is told; connections that are still there are cut."""
_KEEP_ALIVE_SECONDS = 60
_SPARE_FILES = 256


def run_server(app: FastAPI, listener: socket.socket, *, when_ready: Callable[[], None]) -> None:
    """Answers on `listener` until a signal comes. when_ready: called once, when the models are loaded."""
    service: Service = app.state.service
    for name in ("uvicorn.error", "uvicorn.access", "uvicorn.asgi"):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = (
            ([ServiceLogHandler(service.log)] if name == "uvicorn.error" else []),
            False,
        )
    config = uvicorn.Config(
        app,
        http=GuardedProtocol,
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        proxy_headers=False,  # nobody in front of us is believed
        server_header=False,
        timeout_keep_alive=_KEEP_ALIVE_SECONDS,
    )
    _raise_file_limit()
    server = DrainingServer(config, service, when_ready)
    try:
        server.run(sockets=[listener])
    except OSError as error:  # somebody else began to listen between our bind and our listen
        host, port = listener.getsockname()[:2]
        raise UserError(bind_error_message(error, host, port)) from error
    finally:
        service.log.flush()
    if service.failure is not None:
        raise service.failure


def _raise_file_limit() -> None:
    """As many as there may be connections, where this process may have so many.

    Windows knows no such limit.
    """
    with suppress(ImportError, ValueError, OSError):
        import resource

        few, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        wanted = MAX_CONNECTIONS + _SPARE_FILES
        if few < wanted:
            resource.setrlimit(
                resource.RLIMIT_NOFILE,
                (wanted if most == resource.RLIM_INFINITY else min(wanted, most), most),
            )


class DrainingServer(uvicorn.Server):
    """uvicorn's server with another end."""

    def __init__(
        self, config: uvicorn.Config, service: Service, when_ready: Callable[[], None]
    ) -> None:
        super().__init__(config)
        self._service, self._when_ready, self._was_ready = service, when_ready, False

    @property
    def _connections(self) -> list[GuardedProtocol]:
        return cast(list[GuardedProtocol], list(self.server_state.connections))

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        if self.should_exit:
            os._exit(128 + sig)  # asked twice: at once
        self.should_exit = self._service.is_draining = True

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Unlike uvicorn's, does not raise the signal again at the end: to stop when asked is a
        success.
        """
        # no other thread hears signals
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {
            number: signal.signal(number, self.handle_exit)
            for number in (signal.SIGINT, signal.SIGTERM)
        }
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    async def on_tick(self, counter: int) -> bool:
        if counter % 10 == 0:
            self._abort_slow_connections()
        if not self._was_ready and self._service.is_ready:
            self._was_ready = True
            self._when_ready()
        return await super().on_tick(counter) or self._service.failure is not None

    def _abort_slow_connections(self) -> None:
        """Requests that do not come to an end, and answers that are not taken.

        Those whose body is late are answered by the app; this is for whoever has no head yet. An
        answer has `seconds` to be made, and as long again to be read.
        """
        now, seconds = asyncio.get_running_loop().time(), self._service.settings.seconds
        for connection in self._connections:
            reading, answering = connection.reading_since, connection.responding_since
            if (reading is not None and now - reading > seconds) or (
                answering is not None and now - answering > 2 * seconds
            ):
                connection.cut()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """The drain. All waiting is bounded by drain_seconds."""
        self._service.is_draining = True
        loop = asyncio.get_running_loop()
        end = loop.time() + self._service.settings.drain_seconds
        self._service.log.write("draining", n_connections=len(self.server_state.connections))
        lame_until = min(loop.time() + _LAME_DUCK_SECONDS, end - _CUT_SECONDS)
        while loop.time() < lame_until and self._service.failure is None:
            await asyncio.sleep(0.02)
        await self._stop_listening(sockets or [])
        await self._wait_for_connections(end - _CUT_SECONDS)
        self._service.fail_waiting()
        await self._wait_for_connections(end - _LAST_SECONDS)
        n_cut = len(self.server_state.connections)
        for connection in self._connections:
            connection.cut()
        self._service.log.write("stopped", n_cut=n_cut)
        await self.lifespan.shutdown()

    async def _stop_listening(self, sockets: list[socket.socket]) -> None:
        for listener in sockets:
            drop_new_connections(listener)
        await asyncio.sleep(_ACCEPT_SECONDS)  # until those under way have been let in
        for server in self.servers:
            server.close()
        for listener in sockets:
            listener.close()

    async def _wait_for_connections(self, until: float) -> None:
        """Closes connections as they become idle, until there are none."""
        loop = asyncio.get_running_loop()
        while self.server_state.connections and loop.time() < until:
            for connection in self._connections:
                if connection.is_idle and loop.time() - connection.idle_since > _IDLE_SECONDS:
                    connection.transport.close()
            await asyncio.sleep(0.02)
