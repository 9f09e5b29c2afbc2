"""``xtrellis serve``."""

from __future__ import annotations

from typing import Annotated

import typer

from .errors import describe, mark_interrupt_handled, note
from .options import Model
from .words import count


def serve(
    model: Model,
    host: Annotated[
        str, typer.Option(help="Address to listen on; 0.0.0.0 admits other machines.")
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option("--port", "-p", min=0, max=65_535, help="Port; 0 picks a free one.")
    ] = 8000,
    threads: Annotated[
        int | None, typer.Option(min=1, help="Parallel predictions; one per core if omitted.")
    ] = None,
    max_body: Annotated[
        int, typer.Option(min=1_000, help="Largest request body, in bytes.")
    ] = 1_000_000,
    timeout: Annotated[
        float,
        typer.Option(min=0.1, help="Seconds to wait for a client that sends or reads slowly."),
    ] = 10.0,
) -> None:
    """Serve a model over HTTP, with a page to try it; SIGHUP loads the file again."""
    _check_installed()
    from ..serving.app import make_app, take_over
    from ..serving.server import bound_socket, new_server

    app = make_app(model, threads=threads, max_body=max_body, body_seconds=timeout)
    models = app.state.models

    def reload() -> None:
        try:
            served = take_over(models, app.state.metrics)
        except Exception as error:
            note(f"error: the old model stays in use: {describe(error)}")
        else:
            note(f"reloaded {served.name}: {_classes(served.estimator)}")

    with bound_socket(host, port) as listening:
        at, taken = listening.getsockname()[:2]
        address = f"http://{f'[{at}]' if ':' in at else at}:{taken}"
        served = models.current

        def started() -> None:
            note(f"serving {served.name} ({_classes(served.estimator)}) at {address}")

        mark_interrupt_handled()  # the server lets running requests end
        server = new_server(app, timeout, reload, started)
        server.run(sockets=[listening])
    if server.was_interrupted:
        raise KeyboardInterrupt


def _classes(estimator: object) -> str:
    return count(len(estimator.classes_), "class", "classes")  # type: ignore[attr-defined]


def _check_installed() -> None:
    from importlib.util import find_spec

    if any(find_spec(name) is None for name in ("fastapi", "uvicorn")):
        raise ValueError("serving needs FastAPI and uvicorn: pip install 'xtrellis[serve]'")
