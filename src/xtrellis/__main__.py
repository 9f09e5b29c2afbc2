"""``python -m xtrellis``: the command, where its script is not on the path."""

from .command.app import app

if __name__ == "__main__":
    app(prog_name="xtrellis")
