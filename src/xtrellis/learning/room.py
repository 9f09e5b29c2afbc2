"""Memory that training from disk keeps to: of blocks under way, and of finished ones."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np

from ..model.finished_block import FinishedBlock


class Room:
    """Memory that threads share: who needs more than is left waits."""

    def __init__(self, size: float) -> None:
        self.size, self._free = size, size
        self._changed = threading.Condition()

    @contextmanager
    def taken(self, n_bytes: float) -> Iterator[None]:
        """Hold so many bytes, or all there are."""
        n_bytes = min(n_bytes, self.size)
        with self._changed:
            self._changed.wait_for(lambda: self._free >= n_bytes)
            self._free -= n_bytes
        try:
            yield
        finally:
            with self._changed:
                self._free += n_bytes
                self._changed.notify_all()


@dataclass
class FinishedBlocks:
    """Finished blocks that never take more than some bytes together.

    When they would, the smallest weights of all blocks are dropped until three quarters of that are
    left. (Held-out rows choose a threshold later on, which may be larger.)
    """

    most_bytes: float
    blocks: list[FinishedBlock] = field(default_factory=list)
    threshold: float = 0.0

    def add(self, block: FinishedBlock) -> None:
        """Keep one more."""
        self.blocks.append(block.above(self.threshold))
        n_bytes = sum(each.nbytes for each in self.blocks)
        if n_bytes <= self.most_bytes:
            return
        sizes = np.abs(np.concatenate([each.values for each in self.blocks]))
        self.threshold = float(np.quantile(sizes, 1 - 0.75 * self.most_bytes / n_bytes))
        self.blocks = [each.above(self.threshold) for each in self.blocks]
