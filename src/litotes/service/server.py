"""Runs the service until a signal comes, and then stops without losing a request.

    SIGTERM  → /ready answers 503 and every answer closes its connection; everything is still
               accepted and answered (_LAME_DUCK_SECONDS)
             → the listener is closed: new connections are dropped, those under way are accepted
             → connections are closed as they become idle; what has been accepted is answered
             → the end, exit code 0, after drain_seconds at the latest; a second signal ends it at
               once

uvicorn's own shutdown resets connections that are just being made, and closes idle connections on
which a request may be arriving.
"""

from __future__ import annotations

import asyncio
import ctypes
import errno
import logging
import os
import signal
import socket
import struct
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from types import FrameType
from typing import cast

import uvicorn
from fastapi import FastAPI

from litotes.core.errors import UserError
from litotes.service.budget import (
    MAX_CONNECTIONS,
    N_PROBE_CONNECTIONS,
    RequestTurns,
    ServerBudget,
)
from litotes.service.connection import GuardedProtocol
from litotes.service.state import Service

_LAME_DUCK_SECONDS = 1.0
_ACCEPT_SECONDS = 0.2
_IDLE_SECONDS = 1.0
"""While draining, a connection is closed after so long without a request; a client in the middle of
its work sends the next one sooner.
"""
_FAIL_SECONDS, _ABORT_SECONDS = 1.5, 0.5
"""Before the end of the drain: requests that still wait get a 503; connections are aborted."""
_KEEP_ALIVE_SECONDS = 60
_SWITCH_SECONDS = 0.001
"""How long a thread may keep Python to itself: torch asks for it hundreds of times a text, and each
time it would wait so long for a busy event loop.
"""
_SPARE_FILES = 192 + N_PROBE_CONNECTIONS

_SO_ATTACH_FILTER = 26
_DROP_SYN = (
    struct.pack("HBBI", 0x30, 0, 0, 13),  # load the byte of the TCP header that has the flags
    struct.pack("HBBI", 0x54, 0, 0, 0x12),  # keep SYN and ACK
    struct.pack("HBBI", 0x15, 0, 1, 0x02),  # if it is SYN alone, a connection attempt:
    struct.pack("HBBI", 0x06, 0, 0, 0),  # drop it
    struct.pack("HBBI", 0x06, 0, 0, 0xFFFFFFFF),  # otherwise let it pass
)
"""A classic BPF program; each instruction is (code, jump if true, jump if false, operand)."""


def bind_socket(host: str, port: int) -> socket.socket:
    """Binds, but does not listen yet: no client connects before the server can answer."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except OSError as error:
        raise UserError(
            f"--host {host}: there is no such name or address. Use 127.0.0.1, or 0.0.0.0 for all of"
            " this machine's."
        ) from error
    listener = socket.socket(family, kind, protocol)
    with _bind_errors(host, port):
        try:
            if sys.platform != "win32":  # on Windows it would let two servers share a port
                listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(address)
        except OSError:
            listener.close()
            raise
    return listener


@contextmanager
def _bind_errors(host: str, port: int) -> Iterator[None]:
    """Turns what the system says of an address into a sentence."""
    says = {
        errno.EADDRINUSE: (
            f"Port {port} is in use on {host}: choose another one with --port, or --port 0 for any"
            " that is free."
        ),
        errno.EACCES: f"You may not listen on port {port}: choose one from 1024.",
        errno.EADDRNOTAVAIL: (
            f"--host {host} is not an address of this machine. Use 127.0.0.1, or 0.0.0.0 for all of"
            " its addresses."
        ),
    }
    try:
        yield
    except OSError as error:
        other = f"Cannot listen on {host}, port {port}: {error}. Choose others with --host, --port."
        raise UserError(says.get(error.errno or 0, other)) from error


def listener_url(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def drop_new_connections(listener: socket.socket) -> None:
    """Makes the kernel drop new connection attempts; those under way can still be accepted. Linux
    only.

    If the socket were simply closed, connections that the kernel has accepted but we have not would
    be reset. A client whose attempt (SYN) is dropped tries again after a second, finds the socket
    closed and goes elsewhere. Other systems have no such filter.
    """
    if sys.platform != "linux":
        return
    code = ctypes.create_string_buffer(b"".join(_DROP_SYN))
    filter_program = struct.pack("HP", len(_DROP_SYN), ctypes.addressof(code))
    with suppress(OSError):  # a sandbox may not allow it
        listener.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, filter_program)


def run_server(app: FastAPI, listener: socket.socket, *, when_ready: Callable[[], None]) -> None:
    """Serves on `listener` until a signal comes. when_ready: called once the models are loaded."""
    service: Service = app.state.service
    # the warnings of uvicorn go to the service's log, and its other lines nowhere
    for name in ("uvicorn.error", "uvicorn.access", "uvicorn.asgi"):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [], False
    handler = logging.Handler(logging.WARNING)
    handler.emit = service.log.take  # type: ignore[method-assign]
    logging.getLogger("uvicorn.error").addHandler(handler)
    max_connections = min(MAX_CONNECTIONS, _raise_file_limit() - _SPARE_FILES)
    budget = ServerBudget(service.settings, max_connections=max_connections)
    protocol = partial(GuardedProtocol, budget=budget, turns=RequestTurns())
    config = uvicorn.Config(
        app,
        http=cast(type[asyncio.Protocol], protocol),
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        proxy_headers=False,  # no proxy is trusted
        server_header=False,
        timeout_keep_alive=_KEEP_ALIVE_SECONDS,
    )
    sys.setswitchinterval(_SWITCH_SECONDS)
    server = DrainingServer(config, service, when_ready)
    try:
        # another process may have begun to listen between our bind and our listen
        with _bind_errors(*listener.getsockname()[:2]):
            server.run(sockets=[listener])
    finally:
        service.log.flush()
    if service.failure is not None:
        raise service.failure


def _raise_file_limit() -> int:
    """Allows a file descriptor for every connection, as far as this process may; returns how many
    it may have.

    Windows has no such limit.
    """
    wanted = MAX_CONNECTIONS + _SPARE_FILES
    with suppress(ImportError, ValueError, OSError):
        import resource

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if hard != resource.RLIM_INFINITY:
            wanted = min(wanted, hard)
        if soft != resource.RLIM_INFINITY and soft < wanted:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return wanted


class DrainingServer(uvicorn.Server):
    """uvicorn's server with a shutdown that loses no request."""

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
            os._exit(128 + sig)  # the second signal: at once
        self.should_exit = self._service.is_draining = True

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Unlike uvicorn's, does not raise the signal again at the end: stopping on request is a
        success. SIGHUP too, when the terminal is closed; but not if it is ignored, as `nohup` asks
        for.
        """
        # only the main thread receives signals
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        hangup = getattr(signal, "SIGHUP", signal.SIGTERM)  # Windows has none
        previous = {}
        for number in {signal.SIGINT, signal.SIGTERM, hangup}:
            if number != hangup or signal.getsignal(number) != signal.SIG_IGN:
                previous[number] = signal.signal(number, self.handle_exit)
        try:
            yield
        finally:
            for number, handler in previous.items():
                signal.signal(number, handler)

    async def on_tick(self, counter: int) -> bool:
        if counter % 10 == 0:
            self._abort_slow_connections()
        if not self._was_ready and self._service.is_ready:
            self._was_ready = True
            self._when_ready()
        return await super().on_tick(counter) or self._service.failure is not None

    def _abort_slow_connections(self) -> None:
        """Ends connections whose request does not arrive, or whose answer is not read.

        The app itself answers when a body is late; this is for heads. An answer has `seconds` to be
        computed, and as long again to be read.
        """
        now, seconds = asyncio.get_running_loop().time(), self._service.settings.seconds
        for connection in self._connections:
            limits = (connection.reading_since, seconds), (connection.responding_since, 2 * seconds)
            if any(since is not None and now - since > most for since, most in limits):
                connection.abort()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """The drain; it takes drain_seconds at most."""
        self._service.is_draining = True
        loop = asyncio.get_running_loop()
        end = loop.time() + self._service.settings.drain_seconds
        self._service.log.write("draining", n_connections=len(self.server_state.connections))
        lame_duck_until = min(loop.time() + _LAME_DUCK_SECONDS, end - _FAIL_SECONDS)
        while loop.time() < lame_duck_until and self._service.failure is None:
            await asyncio.sleep(0.02)
        for listener in sockets or []:
            drop_new_connections(listener)
        await asyncio.sleep(_ACCEPT_SECONDS)  # until the connections under way are accepted
        for server in self.servers:
            server.close()
        for listener in sockets or []:
            listener.close()
        await self._wait_for_connections(end - _FAIL_SECONDS)
        self._service.fail_waiting()
        await self._wait_for_connections(end - _ABORT_SECONDS)
        connections = self._connections
        for connection in connections:
            connection.abort()
        self._service.log.write("stopped", n_cut=len(connections))
        await self.lifespan.shutdown()

    async def _wait_for_connections(self, until: float) -> None:
        """Closes connections as they become idle, until there are none."""
        loop = asyncio.get_running_loop()
        while self.server_state.connections and loop.time() < until:
            for connection in self._connections:
                if connection.is_idle and loop.time() - connection.idle_since > _IDLE_SECONDS:
                    connection.transport.close()
            await asyncio.sleep(0.02)
