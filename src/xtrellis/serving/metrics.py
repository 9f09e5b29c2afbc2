"""Counters and a latency histogram in the text format of Prometheus."""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections import Counter

BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)  # seconds


class Metrics:
    """What the server has done since it started.

    >>> metrics = Metrics()
    >>> metrics.request("/predict", 200, 0.002)
    >>> metrics.count("xtrellis_inputs_total", 3)
    >>> print(metrics.text({"xtrellis_classes": 5}))  # doctest: +ELLIPSIS
    # HELP xtrellis_requests_total Requests by path and status.
    # TYPE xtrellis_requests_total counter
    xtrellis_requests_total{path="/predict",status="200"} 1
    ...
    xtrellis_predict_seconds_bucket{le="0.001"} 0
    xtrellis_predict_seconds_bucket{le="0.0025"} 1
    ...
    # TYPE xtrellis_classes gauge
    xtrellis_classes 5
    <BLANKLINE>
    """

    _HELP = {  # noqa: RUF012
        "xtrellis_inputs_total": "Texts and rows classified.",
        "xtrellis_reloads_total": "Successful reloads of the model file.",
        "xtrellis_failed_reloads_total": "Reloads that failed; the old model stayed in use.",
        "xtrellis_classes": "Classes of the current model.",
        "xtrellis_model_loaded_timestamp_seconds": "When the current model was loaded.",
    }

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._requests: Counter[tuple[str, int]] = Counter()
        self._counters = Counter({name: 0 for name in self._HELP if name.endswith("_total")})
        self._buckets = [0] * (len(BUCKETS) + 1)  # the last one has no upper limit
        self._seconds = 0.0

    def request(self, path: str, status: int, seconds: float) -> None:
        """Count a request, and the time of a prediction if it succeeded."""
        with self._lock:
            self._requests[path, status] += 1
            if path == "/predict" and status == 200:
                self._buckets[bisect_left(BUCKETS, seconds)] += 1
                self._seconds += seconds

    def count(self, name: str, amount: int = 1) -> None:
        """Add to a counter."""
        with self._lock:
            self._counters[name] += amount

    def text(self, gauges: dict[str, float]) -> str:
        """All metrics, together with these gauges, as Prometheus reads them."""
        with self._lock:
            requests, counters = sorted(self._requests.items()), dict(self._counters)
            buckets, seconds = list(self._buckets), self._seconds
        lines = _heading("xtrellis_requests_total", "Requests by path and status.", "counter")
        lines += [
            f'xtrellis_requests_total{{path="{path}",status="{status}"}} {number}'
            for (path, status), number in requests
        ]
        for name, value in counters.items():
            lines += [*_heading(name, self._HELP[name], "counter"), f"{name} {value}"]
        lines += _histogram("xtrellis_predict_seconds", buckets, seconds)
        for name, gauge in gauges.items():
            lines += [*_heading(name, self._HELP[name], "gauge"), f"{name} {gauge!r}"]
        return "\n".join(lines) + "\n"


def _heading(name: str, meaning: str, kind: str) -> list[str]:
    return [f"# HELP {name} {meaning}", f"# TYPE {name} {kind}"]


def _histogram(name: str, buckets: list[int], seconds: float) -> list[str]:
    """Lines of a histogram, in which each bucket includes the smaller ones."""
    lines, total = _heading(name, "Seconds per successful prediction.", "histogram"), 0
    for limit, number in zip((*BUCKETS, "+Inf"), buckets, strict=True):
        total += number
        lines.append(f'{name}_bucket{{le="{limit}"}} {total}')
    return [*lines, f"{name}_sum {seconds:.6f}", f"{name}_count {total}"]
