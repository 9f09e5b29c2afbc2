"""Blocks: every edge in its block, with the right rows and signs."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings

from samples import topics
from strategies import graphs
from xtrellis._arrays import canonical_csr
from xtrellis.graph import Trellis, codewords
from xtrellis.learning import Arow, LinearSVM
from xtrellis.learning.blocks import all_edge_groups, block_rows, make_block, plan_blocks
from xtrellis.learning.rows import prepare_rows
from xtrellis.learning.training import train_block


def rows_of(trellis, seed=0, n_rows=300):
    X, _ = topics(n_rows=n_rows, seed=seed)
    rng = np.random.RandomState(seed)
    paths = rng.randint(0, trellis.n_classes, n_rows)
    nobody = np.zeros(n_rows, bool)
    weights = np.ones(n_rows, np.float32)
    rows = prepare_rows(trellis, canonical_csr(X), paths, weights, nobody, rng)
    return rows, rows.paths


@pytest.mark.parametrize(("training", "code"), [("independent", "independent"), ("local", "local")])
@given(graph=graphs(max_classes=80))
@settings(max_examples=40)
def test_blocks_are_the_columns_of_the_code(training, code, graph):
    """Each edge is in at most one block, with the rows and signs of its column."""
    trellis = Trellis(*graph)
    rows, paths = rows_of(trellis)
    matrix = codewords(trellis, paths, code=code)
    seen = np.zeros(trellis.n_edges, int)
    for plan in plan_blocks(trellis, rows, training, LinearSVM()):
        block, features = make_block(rows, plan)
        members = np.arange(len(paths)) if plan.rows is None else plan.rows
        np.testing.assert_array_equal(block.csr.toarray(), rows.X[members][:, features].toarray())
        for local, edge in enumerate(plan.edges):
            seen[edge] += 1
            np.testing.assert_array_equal(block.signs(local), matrix[members, edge])
            others = np.setdiff1d(np.arange(len(paths)), members)
            assert not matrix[others, edge].any()
    assert seen.max() <= 1
    for edge in np.flatnonzero(seen == 0):  # nothing to learn, or the same as another
        told = matrix[matrix[:, edge] != 0, edge]
        assert (told == told[:1]).all() or edge in trellis.twin_edges()[0]


@given(graph=graphs(max_classes=60))
def test_twins_have_the_same_column(graph):
    trellis = Trellis(*graph)
    twins, originals = trellis.twin_edges()
    matrix = codewords(trellis, np.arange(trellis.n_classes))
    np.testing.assert_array_equal(matrix[:, twins], matrix[:, originals])
    distinct = np.setdiff1d(np.arange(trellis.n_edges), twins)
    assert len(np.unique(matrix[:, distinct], axis=1).T) == len(distinct)


@given(graph=graphs(max_classes=60))
def test_groups_hold_every_edge_once(graph):
    trellis = Trellis(*graph)
    tails, _ = trellis.endpoints()
    for training in ("local", "independent"):
        groups = all_edge_groups(trellis, training)
        np.testing.assert_array_equal(np.sort(np.concatenate(groups)), np.arange(trellis.n_edges))
        assert all((np.diff(group) > 0).all() for group in groups)
    assert all(len(set(tails[group])) == 1 for group in all_edge_groups(trellis, "local"))


@pytest.mark.parametrize("learner", [LinearSVM(), Arow()], ids=["svm", "arow"])
def test_the_rows_of_a_block_alone_give_the_same_bits(learner):
    """Also at vertices none of whose rows are held out."""
    trellis = Trellis(27, 3)
    rows, paths = rows_of(trellis)
    rows = replace(rows, held_out=paths == paths[0], holds_out=True)
    for plan in plan_blocks(trellis, rows, "local", learner):
        own = block_rows(rows, plan)
        assert len(own.paths) == len(plan.rows)
        assert own.X.shape[1] == len(own.features) == len(np.unique(own.X.indices))
        alone = replace(plan, rows=np.arange(len(own.paths)))
        expected, found = (
            train_block(*each, learner, 3, 0) for each in ((rows, plan), (own, alone))
        )
        assert found.losses == expected.losses
        for name in ("finished", "before"):
            one, other = vars(getattr(expected, name)), vars(getattr(found, name))
            assert all(np.array_equal(one[field], other[field]) for field in one)


def test_many_rows_make_larger_blocks(monkeypatch):
    trellis = Trellis(27, 27)
    rows, _ = rows_of(trellis)

    def n_blocks(times_rows, most):
        monkeypatch.setattr("xtrellis.learning.blocks.BLOCK_BYTES", 1)
        monkeypatch.setattr("xtrellis.learning.blocks.TIMES_ROWS", times_rows)
        monkeypatch.setattr("xtrellis.learning.blocks.MOST_BLOCK_BYTES", most)
        return len(plan_blocks(trellis, rows, "independent", LinearSVM()))

    assert n_blocks(1_000, 2**30) == 1
    assert n_blocks(1_000, 1) == n_blocks(0, 2**30) > 20  # an edge each
