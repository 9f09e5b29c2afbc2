"""The service as a FastAPI application: predictions, health, metrics, reloading, and a page.

Predictions run in a pool of threads, one per core, because the kernels release Python's lock.
"""

from __future__ import annotations

import asyncio
import ipaddress
import json
import os
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from importlib.resources import files
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response
from starlette.exceptions import HTTPException

from .. import __version__
from .._checks import what_it_must_be
from .answers import answer
from .guard import Guard
from .metrics import Metrics
from .models import ModelHolder, ServedModel
from .requests import PredictAnswer, PredictRequest, Refusal

MAX_BODY = 1_000_000  # bytes
BODY_SECONDS = 10.0

# For the OpenAPI page only: ``answers`` builds the answers, and they are not validated again.
_PREDICT_ANSWERS: dict[int | str, dict[str, Any]] = {
    200: {"model": PredictAnswer},
    400: {"model": Refusal, "description": "The body is not JSON."},
    408: {"model": Refusal, "description": "The body took too long to arrive."},
    413: {"model": Refusal, "description": "The body is too large."},
    422: {"model": Refusal, "description": "A field is wrong, or does not suit this model."},
}

# The page is self-contained: the browser is told to load nothing from elsewhere.
_PAGE_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; script-src "
    "'unsafe-inline'; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}


class Answer(JSONResponse):
    """A JSON response that can contain labels of any type."""

    def render(self, content: Any) -> bytes:
        """Encode content as JSON; labels that JSON does not know are written as text."""
        return json.dumps(content, ensure_ascii=False, default=str).encode("utf-8", "replace")


def make_app(
    path: str | Path,
    *,
    threads: int | None = None,
    max_body: int = MAX_BODY,
    body_seconds: float = BODY_SECONDS,
) -> FastAPI:
    """Application that serves a model file.

    Parameters
    ----------
    path : str or path
        Model file. It is read now, and again on ``POST /reload``.
    threads : int or None, default=None
        Number of predictions that run at the same time; None means one per core.
    max_body : int, default=1_000_000
        Largest body of a request, in bytes.
    body_seconds : float, default=10
        Time that a client has to send the body.

    Examples
    --------
    >>> import os, tempfile
    >>> from xtrellis import TrellisTextClassifier
    >>> from xtrellis.serving.app import make_app
    >>> texts = ["red apple", "green apple", "fast car", "slow car"]
    >>> clf = TrellisTextClassifier().fit(texts, ["fruit", "fruit", "vehicle", "vehicle"])
    >>> path = os.path.join(tempfile.mkdtemp(), "model.xtrellis")
    >>> n_bytes = clf.save(path)
    >>> app = make_app(path)
    >>> app.state.models.current.facts()["classes"]
    2
    """
    models, metrics = ModelHolder(path), Metrics()
    pool = ThreadPoolExecutor(threads or os.cpu_count() or 1, thread_name_prefix="predict")

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        pool.shutdown(cancel_futures=True)

    app = FastAPI(
        title="xtrellis",
        version=__version__,
        description="Extreme multiclass classification: one label out of many classes.",
        docs_url=None,  # FastAPI's own pages load scripts from elsewhere
        redoc_url=None,
        lifespan=lifespan,
    )
    app.state.models, app.state.metrics = models, metrics
    app.add_middleware(Guard, metrics=metrics, max_body=max_body, body_seconds=body_seconds)
    app.add_exception_handler(RequestValidationError, _refuse_invalid)
    app.add_exception_handler(HTTPException, _refuse_http)

    @app.post("/predict", summary="Classify texts or sparse rows", responses=_PREDICT_ANSWERS)
    async def predict(request: PredictRequest) -> Response:
        served = models.current
        loop = asyncio.get_running_loop()
        try:
            # Large answers also take long to encode: done in the pool, this blocks nobody else.
            reply = await loop.run_in_executor(pool, lambda: Answer(answer(served, request)))
        except ValueError as error:
            return _refusal(422, error)
        metrics.count("xtrellis_inputs_total", len(request.inputs))
        return reply

    @app.get("/health", summary="Check that the service is up, and which model it serves")
    async def health() -> Response:
        return Answer({"status": "ok", "version": __version__, **models.current.facts()})

    @app.get("/metrics", summary="Counters and latencies in Prometheus format")
    async def metrics_text() -> Response:
        current = models.current
        gauges = {
            "xtrellis_classes": len(current.estimator.classes_),
            "xtrellis_model_loaded_timestamp_seconds": current.loaded_at.timestamp(),
        }
        kind = "text/plain; version=0.0.4; charset=utf-8"
        return PlainTextResponse(metrics.text(gauges), media_type=kind)

    @app.post("/reload", summary="Read the model file again (from this machine only)")
    async def reload(request: Request) -> Response:
        if not is_local(request):
            return _refusal(403, "a reload can only be requested from this machine")
        loop = asyncio.get_running_loop()
        try:  # in another pool, so that predictions continue meanwhile
            served = await loop.run_in_executor(None, take_over, models, metrics)
        except (ValueError, OSError, MemoryError) as error:
            return _refusal(500, f"the old model stays in use: {_one_line(error)}")
        return Answer({"status": "ok", **served.facts()})

    @app.get("/", include_in_schema=False)
    async def page() -> Response:
        return HTMLResponse(_file("page.html"), headers=_PAGE_HEADERS)

    @app.get("/docs", include_in_schema=False)
    async def docs() -> Response:
        return HTMLResponse(_file("docs.html"), headers=_PAGE_HEADERS)

    return app


def take_over(models: ModelHolder, metrics: Metrics) -> ServedModel:
    """Start serving the model file as it is now, and count it; on an error the old model stays."""
    try:
        served = models.reload()
    except Exception:
        metrics.count("xtrellis_failed_reloads_total")
        raise
    metrics.count("xtrellis_reloads_total")
    return served


def is_local(request: Request) -> bool:
    """Whether a request comes from this machine, and not through a proxy or from a web page.

    A foreign web page that is open in a browser on this machine could send such a request, but
    browsers then add an ``Origin`` header.
    """
    passed_on = ("forwarded", "x-forwarded-for", "x-real-ip", "via", "origin")
    if request.client is None or any(name in request.headers for name in passed_on):
        return False
    try:
        return ipaddress.ip_address(request.client.host).is_loopback
    except ValueError:
        return False


def _file(name: str) -> str:
    return (files(__package__) / name).read_text(encoding="utf-8")


# ---------------------------------------------------------------------- errors


async def _refuse_http(request: Request, error: Exception) -> Response:
    """One line about what FastAPI refuses itself, such as a body that cannot be decoded."""
    assert isinstance(error, HTTPException)
    reason = error.detail
    if error.status_code == 400 and request.url.path == "/predict":
        reason = "the body is not JSON in UTF-8, or too deep, or has a number of too many digits"
    reply = _refusal(error.status_code, reason)
    reply.headers.update(error.headers or {})
    return reply


async def _refuse_invalid(request: Request, error: Exception) -> Response:
    """One line about a wrong body: 400 if it is not JSON, 422 if its content is invalid."""
    first: dict[str, Any] = dict(error.errors()[0])  # type: ignore[attr-defined]
    if first["loc"] == ("body",) and first["type"] in ("missing", "model_attributes_type"):
        if first["type"] == "missing":
            return _refusal(422, 'the body is empty: send JSON such as {"text": "..."}')
        if "json" not in request.headers.get("content-type", ""):  # and so it was not parsed
            return _refusal(422, 'the header "Content-Type: application/json" is missing')
        return _refusal(422, 'the body must be a JSON object such as {"text": "..."}')
    if first["type"] == "json_invalid":
        reason = str(first.get("ctx", {}).get("error", "error")).removesuffix(" at")
        return _refusal(400, f"the body is not JSON: {reason} at character {first['loc'][-1]}")
    where = ".".join(str(part) for part in first["loc"] if part != "body")
    message = str(first["msg"]).removeprefix("Value error, ")
    own_words = {"extra_forbidden": "is not a field of requests", "missing": "is missing"}
    if own := own_words.get(first["type"]) or what_it_must_be(message):
        return _refusal(422, f"{where} {own}")
    return _refusal(422, f"{where}: {message}" if where else message)


def _refusal(status: int, reason: Exception | str) -> Response:
    return Answer({"detail": _one_line(reason)}, status_code=status)


def _one_line(error: Exception | str) -> str:
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error).strip().partition("\n")[0] or type(error).__name__
