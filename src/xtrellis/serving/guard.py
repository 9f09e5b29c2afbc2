"""Middleware for every request: bounds the size and the time of its body, and counts it."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from .metrics import Metrics

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

PATHS = ("/", "/predict", "/health", "/metrics", "/reload", "/openapi.json", "/docs")


class Guard:
    """ASGI middleware that reads the whole body before the application sees the request.

    Parameters
    ----------
    app : ASGI application
    metrics : Metrics
        Where requests are counted. Unknown paths are counted together, as clients can invent them.
    max_body : int
        Largest body in bytes; a larger one is answered with 413.
    body_seconds : float
        Time that a client has to send the body; a slower one is answered with 408.
    """

    def __init__(self, app: Any, metrics: Metrics, max_body: int, body_seconds: float) -> None:
        self.app, self.metrics = app, metrics
        self.max_body, self.body_seconds = max_body, body_seconds

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Handle one request; events other than HTTP requests, such as startup, are passed on."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        if scope["method"] == "HEAD":  # as GET; the server leaves out the body of the answer
            scope = {**scope, "method": "GET"}
        started, status = time.perf_counter(), 499  # unless an answer is sent, the client has gone

        async def send_counted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._answer(scope, receive, send_counted)
        except Exception:
            status = 500
            raise
        finally:
            path = scope["path"] if scope["path"] in PATHS else "other"
            self.metrics.request(path, status, time.perf_counter() - started)

    async def _answer(self, scope: Message, receive: Receive, send: Send) -> None:
        too_large = 413, f"the body is larger than {self.max_body:,} bytes"
        announced = dict(scope["headers"]).get(b"content-length", b"0")
        if announced.isdigit() and int(announced) > self.max_body:
            await refuse(send, *too_large)
            return
        body = bytearray()
        try:
            async with asyncio.timeout(self.body_seconds):
                while True:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        return
                    body += message.get("body", b"")
                    if len(body) > self.max_body:
                        await refuse(send, *too_large)
                        return
                    if not message.get("more_body", False):
                        break
        except TimeoutError:
            await refuse(send, 408, f"the body took longer than {self.body_seconds:g} seconds")
            return
        is_read = False

        async def receive_again() -> Message:
            nonlocal is_read
            if is_read:
                return await receive()
            is_read = True
            return {"type": "http.request", "body": bytes(body), "more_body": False}

        await self.app(scope, receive_again, send)


async def refuse(send: Send, status: int, reason: str) -> None:
    """Answer with one line, and close the connection: the rest of the body is not read."""
    content = json.dumps({"detail": reason}).encode()
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(content)).encode()),
        (b"connection", b"close"),
    ]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": content})
