"""Names for workers that nobody has had before."""

from __future__ import annotations

import os
import secrets
import socket

_HOST_CHARACTERS = 100


def new_worker_id() -> str:
    """A name that no other call returns, in this process, in a fork of it, or on another host.

    Host and process id are in it for people to read; 96 random bits make it unique. At most 256
    bytes. A restarted or reconnected worker takes a new one, so that what its predecessor left
    behind is not taken for its own.
    """
    host = "".join(c if c.isascii() and c.isprintable() else "?" for c in socket.gethostname())
    host = host.strip()[:_HOST_CHARACTERS] or "localhost"
    return f"{host}:{os.getpid()}:{secrets.token_urlsafe(12)}"
