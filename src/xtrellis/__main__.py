"""``python -m xtrellis``: the command, where its script is not on the path."""

from .command.app import main

if __name__ == "__main__":
    main()
