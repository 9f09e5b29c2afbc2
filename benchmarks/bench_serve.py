"""Load on ``xtrellis serve`` over loopback, with 1, 8 and 32 clients at once.

    python benchmarks/bench_serve.py [MODEL] [--seconds 10] [--clients 1 8 32] [--warm-up 2]
    python benchmarks/bench_serve.py [MODEL] --requests 100000

Without a model, one is trained on the bundled diagnoses. The server is a process of its own; the
clients are another, each with one connection that it keeps, asking for the five best classes of one
text after the other: the texts of the bundled test part. A Markdown table has one line per number
of clients: requests per second, the median and the 99th percentile of the time to the answer,
errors (anything but 200), and the memory of the server before and after (resident, in MB; Linux).
Clients and server share the machine's cores.

With ``--requests``, so many are sent by 8 clients, a tenth of them with explanations, and the table
has one line per tenth of the way. The memory of the server must be flat: the last line says by how
much it grew after the first tenth.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
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

LONGEST = 3_600.0  # seconds of a tenth of the requests
N_PARTS, N_CLIENTS = 10, 8


def request_of(text: str, explain: bool = False) -> bytes:
    """A request as it goes over the wire."""
    body = json.dumps({"text": text, "top_k": 5, "explain": explain}).encode()
    head = f"POST /predict HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


async def client(
    port: int, requests: list[bytes], first: int, until: float, most: float = math.inf
) -> Any:
    """Seconds of each request of one client, and its number of errors."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    seconds: list[float] = []
    n_errors = 0
    while (started := time.perf_counter()) < until and len(seconds) < most:
        writer.write(requests[(first + len(seconds)) % len(requests)])
        head = await reader.readuntil(b"\r\n\r\n")
        length = re.search(rb"(?i)content-length: (\d+)", head)
        assert length is not None, head
        await reader.readexactly(int(length[1]))
        seconds.append(time.perf_counter() - started)
        n_errors += not head.startswith(b"HTTP/1.1 200")
    writer.close()
    return seconds, n_errors


def load(
    port: int, n_clients: int, duration: float, requests: list[bytes], most: float, into: Any
) -> None:
    """All clients, in this process."""

    async def run() -> Any:
        until = time.perf_counter() + duration
        tasks = [client(port, requests, 1000 * i, until, most) for i in range(n_clients)]
        return await asyncio.gather(*tasks)

    found = asyncio.run(run())
    into.put((np.concatenate([own for own, _ in found]), sum(errors for _, errors in found)))


def under_load(
    port: int, n_clients: int, duration: float, requests: list[bytes], most: float = math.inf
) -> tuple[Any, int]:
    """Seconds of all requests, and errors, with the clients in a second process.

    Each client stops after the duration, or after so many requests.
    """
    context = get_context("spawn")
    queue = context.Queue()
    process = context.Process(target=load, args=(port, n_clients, duration, requests, most, queue))
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
    parser.add_argument("--requests", type=int, help="watch the memory over so many instead")
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
            port, texts = port_of(server), split.test_texts[:5000]
            under_load(port, 8, options.warm_up, [request_of(text) for text in texts])
            if options.requests is None:
                measure(server, port, texts, options)
            else:
                watch_memory(server, port, texts, options.requests)
        finally:
            server.send_signal(signal.SIGTERM)
            print(f"\nThe server ended with code {server.wait(30)}.")


def port_of(server: Any) -> int:
    """Port that a server says it listens at."""
    for line in server.stderr:
        print(line, end="", file=sys.stderr)
        if found := re.search(r"at http://.*:(\d+)$", line.strip()):
            return int(found[1])
    raise SystemExit("the server has not started")


def measure(server: Any, port: int, texts: list[str], options: argparse.Namespace) -> None:
    """Print requests per second and times to the answer."""
    requests = [request_of(text) for text in texts]
    print("| clients | requests | per second | p50 ms | p99 ms | errors | MB before | MB after |")
    print("| ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    for n_clients in options.clients:
        before = resident_megabytes(server.pid)
        seconds, n_errors = under_load(port, n_clients, options.seconds, requests)
        after = resident_megabytes(server.pid)
        p50, p99 = 1000 * np.percentile(seconds, [50, 99])
        print(
            f"| {n_clients} | {len(seconds):,} | {len(seconds) / options.seconds:,.0f} | {p50:.2f} | "
            f"{p99:.2f} | {n_errors} | {before:.1f} | {after:.1f} |",
            flush=True,
        )


def watch_memory(server: Any, port: int, texts: list[str], n_requests: int) -> None:
    """Print the memory of the server after each tenth of many requests."""
    requests = [request_of(text, explain=i % 10 == 0) for i, text in enumerate(texts)]
    each = max(1, round(n_requests / N_PARTS / N_CLIENTS))
    sizes, total = [], 0
    print("| requests | errors | per second | MB |\n| ---: | ---: | ---: | ---: |")
    for _ in range(N_PARTS):
        seconds, n_errors = under_load(port, N_CLIENTS, LONGEST, requests, each)
        rate = N_CLIENTS * len(seconds) / seconds.sum()
        total += len(seconds)
        sizes.append(resident_megabytes(server.pid))
        print(f"| {total:,} | {n_errors} | {rate:,.0f} | {sizes[-1]:.1f} |", flush=True)
    print(f"\nAfter the first line, memory grew by {max(sizes) - sizes[0]:.1f} MB.")


if __name__ == "__main__":
    main()
