"""The server process: a socket, uvicorn, and signals.

SIGTERM and Ctrl-C let running requests finish; SIGHUP loads a new model file.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

KEEP_ALIVE_SECONDS = 30  # between two requests on one connection
STOP_SECONDS = 10  # for running requests to finish
MOST_CONNECTIONS = 500  # further ones are answered with 503
SEND_BUFFER = 131_072  # bytes per connection that the system keeps for clients to read
LEAST_RATE = 10_000  # bytes per second that a client must read of an answer


class TimedProtocol(H11Protocol):
    """uvicorn's protocol, with time limits for slow clients.

    uvicorn itself waits forever for the rest of a request's head, and for a client to read its
    answer. But the number of connections is limited, and an unread answer takes memory.
    :class:`Guard` limits the time for bodies of requests.
    """

    patience = 10.0  # seconds for a head, or for an answer that is not being read
    _head_timer: asyncio.TimerHandle | None = None
    _answer_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:  # noqa: D102
        super().connection_made(transport)
        # Head and body of an answer are sent separately. By default, the body waits until the
        # client acknowledges the head, which takes 40 ms; asyncio turns this off only for sockets
        # that it creates itself.
        connection = transport.get_extra_info("socket")
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        transport.set_write_buffer_limits(0)  # pause_writing is called as soon as bytes are waiting
        self._watch_head()

    def data_received(self, data: bytes) -> None:  # noqa: D102
        super().data_received(data)
        self._watch_head()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: D102
        for timer in (self._head_timer, self._answer_timer):
            if timer is not None:
                timer.cancel()
        super().connection_lost(exc)

    # ------------------------------------------------------------------ heads of requests

    @property
    def _is_waiting(self) -> bool:
        """Whether no request is being answered, though part of a head may have arrived."""
        return self.cycle is None or self.cycle.response_complete

    def _watch_head(self) -> None:
        if not self._is_waiting:
            if self._head_timer is not None:
                self._head_timer.cancel()
            self._head_timer = None
        elif self._head_timer is None:
            self._head_timer = self.loop.call_later(self.patience, self._give_up_head)

    def _give_up_head(self) -> None:
        if self._is_waiting:
            self.transport.close()
        self._head_timer = None

    # ------------------------------------------------------------------ answers

    def pause_writing(self) -> None:
        """Start the timer: part of an answer is waiting for the client to read."""
        super().pause_writing()
        self._watch_answer()

    def resume_writing(self) -> None:
        """Stop the timer: everything has been handed to the operating system."""
        super().resume_writing()
        if self._answer_timer is not None:
            self._answer_timer.cancel()
        self._answer_timer = None

    def _watch_answer(self) -> None:
        self._answer_timer = self.loop.call_later(
            self.patience, self._check_progress, self.transport.get_write_buffer_size()
        )

    def _check_progress(self, n_before: int) -> None:
        """Drop the connection if the client has read too little since the timer was started."""
        n_read = n_before - self.transport.get_write_buffer_size()
        if n_read >= LEAST_RATE * self.patience:
            self._watch_answer()
            return
        # Discard what the operating system has accepted, too, instead of trying to send it.
        connection = self.transport.get_extra_info("socket")
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.transport.abort()


class Server(uvicorn.Server):
    """uvicorn's server, with a clean exit on SIGTERM and a callback on SIGHUP.

    Parameters
    ----------
    config : uvicorn.Config
    on_hangup, on_start : callable
        Called in a separate thread on SIGHUP, and once the server is ready.
    """

    def __init__(
        self, config: uvicorn.Config, on_hangup: Callable[[], None], on_start: Callable[[], None]
    ) -> None:
        super().__init__(config)
        self.on_hangup, self.on_start = on_hangup, on_start

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start the server, and call ``on_start``."""
        await super().startup(sockets)
        self.on_start()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Handle signals until the server ends; unlike uvicorn, do not raise them again."""

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
        """Whether Ctrl-C ended the server."""
        return signal.SIGINT in self._captured_signals


def bound_socket(host: str, port: int) -> socket.socket:
    """Listening socket at an address; port 0 picks a free port."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    family, _, _, _, address = found[0]
    try:
        listening = socket.create_server(address[:2], family=family, backlog=MOST_CONNECTIONS)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER)
        return listening
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error)
        raise OSError(error.errno, f"cannot listen: {reason}", f"{host}:{port}") from None


def new_server(
    app: Any, patience: float, on_hangup: Callable[[], None], on_start: Callable[[], None]
) -> Server:
    """Server for an application, with the limits above and this many seconds for slow clients."""
    protocol = type("Protocol", (TimedProtocol,), {"patience": patience})
    config = uvicorn.Config(
        app,
        http=protocol,
        ws="none",
        loop="asyncio",
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,  # /reload trusts the address of the connection, not headers
        limit_concurrency=MOST_CONNECTIONS,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=STOP_SECONDS,
        h11_max_incomplete_event_size=16_384,
    )
    return Server(config, on_hangup, on_start)
