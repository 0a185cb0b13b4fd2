"""The listener: opening it with a sentence when it cannot be, and closing it without losing who is just
coming in.
"""

from __future__ import annotations

import ctypes
import errno
import socket
import struct
import sys
from contextlib import suppress

from litotes.core.errors import UserError

_SO_ATTACH_FILTER = 26


def bind_socket(host: str, port: int) -> socket.socket:
    """Bound but not listening yet: nobody is let in before somebody can answer."""
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
        if sys.platform != "win32":  # there it would let two servers share a port
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
    """Linux: from now on the kernel drops every attempt to connect, while those under way are
    completed and can be accepted.

    Whoever has been let in by the kernel but not yet by us would be cut off if the listener were simply
    closed. A client whose attempt is dropped tries again after a second, finds the listener closed and
    goes elsewhere. Other systems have no such thing.
    """
    if sys.platform != "linux":
        return
    program = [
        (0x30, 0, 0, 13),  # load the byte of a TCP header that has its flags
        (0x54, 0, 0, 0x12),  # of them SYN and ACK
        (0x15, 0, 1, 0x02),  # SYN alone: an attempt to connect
        (0x06, 0, 0, 0),  # drop
        (0x06, 0, 0, 0xFFFFFFFF),  # let pass
    ]
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *line) for line in program))
    with suppress(OSError):  # a sandbox may not allow it
        listener.setsockopt(
            socket.SOL_SOCKET,
            _SO_ATTACH_FILTER,
            struct.pack("HP", len(program), ctypes.addressof(code)),
        )
