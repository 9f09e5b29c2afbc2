"""Measure peers on a set: ``python -m peers SET [NAME ...]``."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from output import one_line_endings
from peers import PEERS, run_peer
from sets import BUNDLED, is_written, kept_folder, load_set
from trials import CACHE
from xtrellis.data.datasets import PAPER_SETS

_SET = (
    f"{' or '.join(BUNDLED)}; a folder with train.svm and test.svm; one of the paper's sets "
    f"({', '.join(PAPER_SETS)}), which is then downloaded; or a folder of train.npz, test.npz and "
    "labels.npz, as sets.write_folder writes them"
)


def main() -> None:
    """Print one line of JSON per peer as it finishes; exit code 1 if one of them failed."""
    parser = argparse.ArgumentParser(prog="peers", description=__doc__)
    parser.add_argument("set", help=_SET)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(PEERS))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--timeout", type=float, default=900, help="seconds per peer")
    parser.add_argument(
        "--cache", type=Path, default=CACHE, help="folder for environments and converted sets"
    )
    wanted = parser.parse_args()
    unknown = set(wanted.names) - set(PEERS)
    if unknown:
        parser.error(
            f"no peer is called {', '.join(sorted(unknown))}; there are {', '.join(PEERS)}"
        )
    with one_line_endings("stopped"):
        folder = data_folder(wanted.set, wanted.cache)
        failed = False
        for name in wanted.names or PEERS:
            row = run_peer(name, folder, wanted.cache, wanted.seed, wanted.timeout)
            print(json.dumps({"peer": name, **row}), flush=True)
            failed = failed or "failed" in row
    sys.exit(int(failed))


def data_folder(name: str, cache: Path) -> Path:
    """Folder of the files that peers read: the given one, or that of a set in the cache."""
    if is_written(Path(name)):
        return Path(name)
    return kept_folder(load_set(name), cache)


if __name__ == "__main__":
    main()
