"""The command ``xtrellis``: train, predict, explain, evaluate, serve, and more.

Results go to standard output, everything else to standard error; progress bars are shown on a
terminal only. ``errors`` lists the exit codes. What takes long to import is imported where it is
used, so that ``--help`` is instant.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .convert import convert
from .errors import report_errors
from .evaluate import evaluate
from .explain import explain
from .inspection import inspect
from .models import prune
from .options import Jobs
from .predict import predict
from .serve import serve
from .train import train
from .usage import OneLineGroup
from .widths import widths

app = typer.Typer(
    name="xtrellis",
    cls=OneLineGroup,
    help="Extreme multiclass classification: one label out of hundreds to a million classes.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        from .. import __version__

        print(f"xtrellis {__version__}")
        raise typer.Exit


@app.callback()
def top(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Extreme multiclass classification: one label out of hundreds to a million classes."""


def demo(
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Folder for the report and its pictures.")
    ] = Path("demo_output"),
    jobs: Jobs = -1,
) -> None:
    """Run every part on bundled data: diagnosis wordings and their ICD-10-CM codes."""
    from .demo import run

    run(output, jobs)


for command in (train, predict, explain, evaluate, prune, widths, inspect, convert, serve, demo):
    app.command()(report_errors(command))


def main() -> None:
    """Run the command in a process of its own."""
    from .small import in_own_process

    in_own_process()
    app(prog_name="xtrellis")
