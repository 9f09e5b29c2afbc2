"""The command, run by tests within their own process."""

from typer.testing import CliRunner

from xtrellis.command.app import app


def run(*arguments, stdin="", code=0):
    """Standard output and error of the command."""
    done = CliRunner().invoke(app, list(map(str, arguments)), input=stdin)
    assert done.exit_code == code, done.output
    return done.stdout, done.stderr


def printed(*arguments, stdin=""):
    """Standard output of a command that succeeds."""
    return run(*arguments, stdin=stdin)[0]


def refused(*arguments, code=1):
    """Standard error of a command that fails."""
    return run(*arguments, code=code)[1]
