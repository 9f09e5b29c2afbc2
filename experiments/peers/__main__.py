"""Measure peers on a folder of data: ``python -m peers DATA_FOLDER [NAME ...]``."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from peers import PEERS, run_peer

CACHE = Path(__file__).resolve().parents[1] / ".cache"


def main() -> None:
    """Print one line of JSON for each peer, as it is done."""
    parser = argparse.ArgumentParser(prog="peers", description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(PEERS))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--timeout", type=float, default=900, help="seconds for each peer")
    parser.add_argument("--cache", type=Path, default=CACHE, help="folder of environments")
    wanted = parser.parse_args()
    unknown = set(wanted.names) - set(PEERS)
    if unknown:
        parser.error(
            f"no peer is called {', '.join(sorted(unknown))}; there are {', '.join(PEERS)}"
        )
    for name in wanted.names or PEERS:
        row = run_peer(name, wanted.data, wanted.cache, wanted.seed, wanted.timeout)
        print(json.dumps({"peer": name, **row}), flush=True)


if __name__ == "__main__":
    main()
