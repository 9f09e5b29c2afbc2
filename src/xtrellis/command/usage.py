"""A wrong command line is reported as any other mistake is: in one line, in our words."""

from __future__ import annotations

import sys
from typing import Any

import typer
from typer.core import TyperGroup

from .errors import note

UsageError: Any = typer.BadParameter.__mro__[1]  # Typer may have click inside


class OneLineGroup(TyperGroup):
    """Commands whose usage errors are one line and exit code 2."""

    def main(self, *args: Any, **extra: Any) -> Any:
        """Run the command that the arguments name."""
        if not extra.get("standalone_mode", True):
            return super().main(*args, **extra)
        extra["standalone_mode"] = False
        try:
            sys.exit(super().main(*args, **extra) or 0)
        except UsageError as error:
            if type(error).__name__ == "NoArgsIsHelpError":  # the help is its message
                error.show()
                sys.exit(error.exit_code)
            where = error.ctx.command_path if error.ctx else "xtrellis"
            note(f"error: {in_words(error)}; see {where} --help")
            sys.exit(error.exit_code)
        except typer.Abort:
            sys.exit(1)


def in_words(error: Any) -> str:
    """What is wrong: the option, what it must be, and what was given, where that is known."""
    from .._checks import what_it_must_be  # it imports NumPy

    param, kind = getattr(error, "param", None), type(error).__name__
    if param is None and kind == "BadParameter":  # raised by us
        return str(error.message)
    if param is None or kind == "MissingParameter":  # the message names the option
        return _lower(error.format_message().replace("(Possible", "(possible"))
    message = str(error.message)
    name = max(param.opts, key=len)
    if must := what_it_must_be(message):
        return f"{name} {must}, got {error.__cause__.errors()[0]['input']!r}"
    return f"{name}: {_lower(message.removeprefix('Value error, '))}"


def _lower(message: str) -> str:
    """Messages begin in lower case and have no full stop, as ours do."""
    return message[:1].lower() + message[1:].rstrip(".")
