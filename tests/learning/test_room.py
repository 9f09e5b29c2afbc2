"""Threads share a room; finished blocks stay within theirs."""

import threading

import numpy as np

from xtrellis.learning.room import FinishedBlocks, Room
from xtrellis.model.finished_block import finish_block


def test_who_needs_more_than_is_left_waits():
    room, order = Room(10), []
    entered = threading.Event()

    def second():
        entered.set()
        with room.taken(8):
            order.append("second")

    with room.taken(7):
        thread = threading.Thread(target=second)
        thread.start()
        assert entered.wait(5)
        with room.taken(3):  # there is room beside the first
            order.append("first")
    thread.join(5)
    assert order == ["first", "second"]
    with room.taken(100):  # never more than there is
        pass


def test_finished_blocks_stay_within_their_memory():
    rng = np.random.default_rng(0)
    kept = FinishedBlocks(20_000)
    for first in range(0, 40, 4):
        weights = rng.standard_normal((300, 4)).astype(np.float32)
        block = finish_block(np.arange(first, first + 4), np.arange(300), weights, np.zeros(4))
        kept.add(block)
        assert sum(each.nbytes for each in kept.blocks) <= 20_000
    assert len(kept.blocks) == 10
    assert kept.threshold > 1
    assert all((np.abs(each.values) > kept.threshold).all() for each in kept.blocks)
