"""Load on ``xtrellis serve`` over loopback, with 1, 8 and 32 clients at once.

    python benchmarks/bench_serve.py [MODEL] [--seconds 10] [--clients 1 8 32] [--warm-up 2]

Without a model, one is trained on the bundled diagnoses. The server is a process of its own; the
clients are another, each with one connection that it keeps, asking for the five best classes of one
text after the other: the texts of the bundled test part. A Markdown table has one line per number
of clients: requests per second, the median and the 99th percentile of the time to the answer,
errors (anything but 200), and the memory of the server before and after (resident, in MB; Linux).
Clients and server share the machine's cores.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import signal
import subprocess
import sys
import tempfile
import time
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

from xtrellis import TrellisTextClassifier, load_icd10cm


def request_of(text: str) -> bytes:
    """A request as it goes over the wire."""
    body = json.dumps({"text": text, "top_k": 5}).encode()
    head = f"POST /predict HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


async def client(port: int, requests: list[bytes], first: int, until: float) -> Any:
    """Seconds of each request of one client, and its number of errors."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    seconds, n_errors, number = [], 0, first
    while (started := time.perf_counter()) < until:
        writer.write(requests[number % len(requests)])
        number += 1
        head = await reader.readuntil(b"\r\n\r\n")
        length = re.search(rb"(?i)content-length: (\d+)", head)
        assert length is not None, head
        await reader.readexactly(int(length[1]))
        seconds.append(time.perf_counter() - started)
        n_errors += not head.startswith(b"HTTP/1.1 200")
    writer.close()
    return seconds, n_errors


def load(port: int, n_clients: int, duration: float, texts: list[str], into: Any) -> None:
    """All clients, in this process."""

    async def run() -> Any:
        requests, until = [request_of(text) for text in texts], time.perf_counter() + duration
        tasks = [client(port, requests, 1000 * i, until) for i in range(n_clients)]
        return await asyncio.gather(*tasks)

    found = asyncio.run(run())
    into.put((np.concatenate([own for own, _ in found]), sum(errors for _, errors in found)))


def under_load(port: int, n_clients: int, duration: float, texts: list[str]) -> tuple[Any, int]:
    """Seconds of all requests, and errors, with the clients in a second process."""
    context = get_context("spawn")
    queue = context.Queue()
    process = context.Process(target=load, args=(port, n_clients, duration, texts, queue))
    process.start()
    found = queue.get(timeout=duration + 60)
    process.join()
    return found


def resident_megabytes(pid: int) -> float:
    """Memory of a process; NaN where there is no /proc."""
    status = Path(f"/proc/{pid}/status")
    found = re.search(r"VmRSS:\s+(\d+) kB", status.read_text()) if status.exists() else None
    return float("nan") if found is None else int(found[1]) / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", nargs="?")
    parser.add_argument("--seconds", type=float, default=10.0, help="per number of clients")
    parser.add_argument("--warm-up", type=float, default=2.0, help="seconds, with 8 clients")
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 8, 32])
    options = parser.parse_args()
    split = load_icd10cm()
    with tempfile.TemporaryDirectory() as folder:
        model = options.model or f"{folder}/icd10cm.xtrellis"
        if options.model is None:
            TrellisTextClassifier().fit(split.train_texts, split.train_labels).save(model)
        server = subprocess.Popen(
            [sys.executable, "-m", "xtrellis", "serve", model, "--port", "0"],
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            measure(server, split.test_texts[:5000], options)
        finally:
            server.send_signal(signal.SIGTERM)
            print(f"\nThe server ended with code {server.wait(30)}.")


def measure(server: Any, texts: list[str], options: argparse.Namespace) -> None:
    """Print the table."""
    port = 0
    for line in server.stderr:
        print(line, end="", file=sys.stderr)
        if found := re.search(r"at http://.*:(\d+)$", line.strip()):
            port = int(found[1])
            break
    under_load(port, 8, options.warm_up, texts)
    print("| clients | requests | per second | p50 ms | p99 ms | errors | MB before | MB after |")
    print("| ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    for n_clients in options.clients:
        before = resident_megabytes(server.pid)
        seconds, n_errors = under_load(port, n_clients, options.seconds, texts)
        after = resident_megabytes(server.pid)
        p50, p99 = 1000 * np.percentile(seconds, [50, 99])
        print(
            f"| {n_clients} | {len(seconds):,} | {len(seconds) / options.seconds:,.0f} | {p50:.2f} | "
            f"{p99:.2f} | {n_errors} | {before:.1f} | {after:.1f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
