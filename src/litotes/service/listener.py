"""The listening socket: bound with a clear error message, closed without losing a connection."""

from __future__ import annotations

import ctypes
import errno
import socket
import struct
import sys
from contextlib import suppress

from litotes.core.errors import UserError

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
    try:
        if sys.platform != "win32":  # on Windows it would let two servers share a port
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
    except OSError as error:
        listener.close()
        raise UserError(bind_error_message(error, host, port)) from error
    return listener


def bind_error_message(error: OSError, host: str, port: int) -> str:
    if error.errno == errno.EADDRINUSE:
        return (
            f"Port {port} is in use on {host}: choose another one with --port, or --port 0 for any"
            " that is free."
        )
    if error.errno == errno.EACCES:
        return f"You may not listen on port {port}: choose one from 1024."
    if error.errno == errno.EADDRNOTAVAIL:
        return (
            f"--host {host} is not an address of this machine. Use 127.0.0.1, or 0.0.0.0 for all of"
            " its addresses."
        )
    return (
        f"Cannot listen on {host}, port {port}: {error.strerror or error}. Choose others with"
        " --host and --port."
    )


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
