"""The server process: a socket, uvicorn, and signals.

SIGTERM and Ctrl-C let running requests end; SIGHUP takes over a new model file.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

KEEP_ALIVE_SECONDS = 30  # between two requests on one connection
STOP_SECONDS = 10  # that running requests have to end
MOST_CONNECTIONS = 500  # further ones are answered with 503


class TimedProtocol(H11Protocol):
    """uvicorn's protocol, with a limit to the time that the head of a request may take.

    uvicorn itself waits forever for the rest of a head, and Python has only so many connections.
    """

    head_seconds = 10.0
    _late: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:  # noqa: D102
        super().connection_made(transport)
        # Heads and bodies of answers are sent apart. By default, the second waits until the client
        # confirms the first, which takes it 40 ms; asyncio sees to that only for its own sockets.
        connection = transport.get_extra_info("socket")
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._watch()

    def data_received(self, data: bytes) -> None:  # noqa: D102
        super().data_received(data)
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: D102
        if self._late is not None:
            self._late.cancel()
        super().connection_lost(exc)

    @property
    def _is_waiting(self) -> bool:
        """Whether no request is being answered: some of its head may have come."""
        return self.cycle is None or self.cycle.response_complete

    def _watch(self) -> None:
        if not self._is_waiting:
            if self._late is not None:
                self._late.cancel()
            self._late = None
        elif self._late is None:
            self._late = self.loop.call_later(self.head_seconds, self._give_up)

    def _give_up(self) -> None:
        if self._is_waiting:
            self.transport.close()
        self._late = None


class Server(uvicorn.Server):
    """uvicorn's server, which ends cleanly on SIGTERM, and calls back on SIGHUP.

    Parameters
    ----------
    config : uvicorn.Config
    on_hangup, on_start : callable
        Called in a thread of its own on SIGHUP; called once requests are answered.
    """

    def __init__(
        self, config: uvicorn.Config, on_hangup: Callable[[], None], on_start: Callable[[], None]
    ) -> None:
        super().__init__(config)
        self.on_hangup, self.on_start = on_hangup, on_start

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, and say so."""
        await super().startup(sockets)
        self.on_start()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Handle signals until the server ends; unlike uvicorn, do not raise them again then."""

        def hang_up(*_: Any) -> None:
            threading.Thread(target=self.on_hangup, daemon=True).start()

        handlers: dict[int, Any] = {
            signal.SIGINT: self.handle_exit,
            signal.SIGTERM: self.handle_exit,
        }
        if hasattr(signal, "SIGHUP"):
            handlers[signal.SIGHUP] = hang_up
        before = {number: signal.signal(number, handle) for number, handle in handlers.items()}
        try:
            yield
        finally:
            for number, handle in before.items():
                signal.signal(number, handle)

    @property
    def was_interrupted(self) -> bool:
        """Whether Ctrl-C ended it."""
        return signal.SIGINT in self._captured_signals


def bound_socket(host: str, port: int) -> socket.socket:
    """Socket at an address; port 0 takes any that is free."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    family, _, _, _, address = found[0]
    try:
        return socket.create_server(address[:2], family=family, backlog=MOST_CONNECTIONS)
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error)
        raise OSError(error.errno, f"cannot listen: {reason}", f"{host}:{port}") from None


def new_server(
    app: Any, head_seconds: float, on_hangup: Callable[[], None], on_start: Callable[[], None]
) -> Server:
    """Server of an application, with the limits above, and one to the time that a head may take."""
    protocol = type("Protocol", (TimedProtocol,), {"head_seconds": head_seconds})
    config = uvicorn.Config(
        app,
        http=protocol,
        ws="none",
        loop="asyncio",
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,  # who asks for a reload is who is connected, whatever headers say
        limit_concurrency=MOST_CONNECTIONS,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=STOP_SECONDS,
        h11_max_incomplete_event_size=16_384,
    )
    return Server(config, on_hangup, on_start)
