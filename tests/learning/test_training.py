"""Blocks and training: every edge in its block, the right rows, and the same bits always."""

import joblib
import numpy as np
import pytest
from hypothesis import given, settings
from sklearn.base import clone

from samples import topics
from strategies import graphs
from xtrellis import TrellisClassifier
from xtrellis._arrays import canonical_csr
from xtrellis.graph import Trellis, codewords
from xtrellis.learning import Arow, LinearSVM
from xtrellis.learning.blocks import make_block, plan_blocks, twin_edges
from xtrellis.learning.rows import hold_out_rows, merge_rows, prepare_rows, visiting_order
from xtrellis.learning.training import _calibration_sample


def rows_of(trellis, seed=0, n_rows=300):
    X, _ = topics(n_rows=n_rows, seed=seed)
    rng = np.random.RandomState(seed)
    paths = rng.randint(0, trellis.n_classes, n_rows)
    nobody = np.zeros(n_rows, bool)
    weights = np.ones(n_rows, np.float32)
    rows = prepare_rows(trellis, canonical_csr(X), paths, weights, nobody, rng)
    return rows, trellis.path_numbers(rows.path_edges)


@pytest.mark.parametrize(("training", "code"), [("independent", "independent"), ("local", "local")])
@given(graph=graphs(max_classes=80))
@settings(max_examples=40)
def test_blocks_are_the_columns_of_the_code(training, code, graph):
    """Each edge is in at most one block, with the rows and signs of its column."""
    trellis = Trellis(*graph)
    rows, paths = rows_of(trellis)
    matrix = codewords(trellis, paths, code=code)
    seen = np.zeros(trellis.n_edges, int)
    for plan in plan_blocks(trellis, rows, training, LinearSVM(), 2**20):
        block, features = make_block(rows, plan, trellis.n_edges)
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
        assert (told == told[:1]).all() or edge in twin_edges(trellis)[0]


@given(graph=graphs(max_classes=60))
def test_twins_have_the_same_column(graph):
    trellis = Trellis(*graph)
    twins, originals = twin_edges(trellis)
    matrix = codewords(trellis, np.arange(trellis.n_classes))
    np.testing.assert_array_equal(matrix[:, twins], matrix[:, originals])
    distinct = np.setdiff1d(np.arange(trellis.n_edges), twins)
    assert len(np.unique(matrix[:, distinct], axis=1).T) == len(distinct)


def test_visiting_order_is_a_new_permutation_each_time():
    rng = np.random.default_rng(0)
    rows = np.arange(100, 1000)
    first, second = visiting_order(rows, rng), visiting_order(rows, rng)
    np.testing.assert_array_equal(np.sort(first), rows)
    np.testing.assert_array_equal(np.sort(second), rows)
    assert (first != second).mean() > 0.9


def test_merging_rows_adds_up_their_weights():
    X, y = topics(n_rows=200)
    twice = np.concatenate([np.arange(200), np.arange(50)])
    shuffled = np.random.default_rng(0).permutation(twice)
    merged, codes, weights = merge_rows(
        canonical_csr(X[shuffled]), y[shuffled], np.ones(250, np.float32)
    )
    assert merged.shape[0] == len(np.unique(np.column_stack([X.toarray(), y]), axis=0))
    assert weights.sum() == 250
    again = merge_rows(canonical_csr(X[twice]), y[twice], np.ones(250, np.float32))
    np.testing.assert_array_equal(merged.toarray(), again[0].toarray())
    np.testing.assert_array_equal(codes, again[1])
    np.testing.assert_array_equal(weights, again[2])


def test_equal_rows_of_different_classes_stay_apart():
    X = canonical_csr(np.eye(3, dtype=np.float32)[[0, 0, 1, 1]])
    _, codes, weights = merge_rows(X, np.array([0, 1, 2, 2]), np.ones(4, np.float32))
    assert sorted(zip(codes.tolist(), weights.tolist(), strict=True)) == [(0, 1), (1, 1), (2, 2)]


def test_holding_out_leaves_a_row_of_every_class():
    codes = np.repeat(np.arange(500), [1, 2, 3, 10, 4] * 100)
    held_out = hold_out_rows(codes, 0.3, np.random.RandomState(0))
    assert set(codes[~held_out]) == set(range(500))
    for size in (2, 3, 10):  # the same share of classes of all sizes
        mine = np.repeat([1, 2, 3, 10, 4] * 100, [1, 2, 3, 10, 4] * 100) == size
        assert abs(held_out[mine].mean() - 0.3) < 0.1


@pytest.mark.parametrize("training", ["local", "independent"])
@pytest.mark.parametrize("learner", ["svm", "arow", "perceptron"])
def test_same_seed_same_bits_for_any_number_of_workers(training, learner):
    X, y = topics()
    models = [
        TrellisClassifier(4, training=training, learner=learner, n_jobs=jobs, random_state=3)
        for jobs in (1, 2, 4)
    ]
    first, *others = [model.fit(X, y).decision_function(X).tobytes() for model in models]
    assert all(other == first for other in others)


def test_block_size_does_not_matter():
    """Wide vertices split over several blocks learn the same, but for the order of rows."""
    X, y = topics(n_classes=40)
    whole = TrellisClassifier(
        40, training="independent", assignment="random", random_state=0, calibration=0
    ).fit(X, y)
    small = clone(whole).set_params(max_memory=400_000).fit(X, y)
    assert np.mean(whole.predict(X) == small.predict(X)) > 0.99


def test_a_memory_bound_does_not_make_the_result_depend_on_workers():
    X, y = topics()
    model = TrellisClassifier(20, training="independent", assignment="random", random_state=0)
    first, second = [
        model.set_params(max_memory=6e5, n_jobs=jobs).fit(X, y).decision_function(X)
        for jobs in (1, 2)
    ]
    np.testing.assert_array_equal(first, second)


def test_features_never_seen_have_no_weights():
    X, y = topics()
    seen = np.asarray(X.sum(axis=0))[0] > 0
    seen[:100] = False
    X = X.multiply(seen).tocsr()
    for model in (TrellisClassifier(random_state=0), TrellisClassifier.paper(5, random_state=0)):
        weights = model.fit(X, y).weights_
        assert weights.n_seen <= seen.sum()
        assert not weights.columns(np.arange(weights.n_edges))[~seen].any()


def test_memory_does_not_grow_with_features_times_edges():
    """A million features at b = 20: the state of a block is over the features of its rows."""
    import tracemalloc

    from scipy import sparse

    rng = np.random.default_rng(0)
    n_rows, n_features = 2000, 1_000_000
    columns = rng.integers(0, n_features, n_rows * 10)
    X = sparse.csr_matrix(
        (np.ones(columns.size, np.float32), columns, np.arange(0, columns.size + 1, 10)),
        (n_rows, n_features),
    )
    y = rng.integers(0, 400, n_rows)
    TrellisClassifier(20, random_state=0).fit(X[:100], y[:100])
    tracemalloc.start()
    model = TrellisClassifier(20, random_state=0).fit(X, y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    everything = n_features * model.trellis_.n_edges * 8
    assert peak < everything / 10, (peak / 2**20, everything / 2**20)


def test_a_memory_bound_that_cannot_hold_is_refused_at_once():
    X, y = topics()
    with pytest.raises(MemoryError, match=r"ordering .* or say assignment='random'"):
        TrellisClassifier(max_memory=1000, random_state=0).fit(X, y)
    model = TrellisClassifier(4, assignment="random", random_state=0)
    with pytest.raises(MemoryError, match=r"max_memory is 0\.0 MB, but training takes at least"):
        model.set_params(max_memory=1000).fit(X, y)
    with pytest.raises(MemoryError, match="early stopping, which keeps all blocks"):
        model.set_params(max_memory=90_000, early_stopping=True).fit(X, y)
    model.set_params(learner="arow", early_stopping=False)
    with pytest.raises(MemoryError, match="partial_fit, which keeps all edges dense"):
        model.partial_fit(X, y, classes=np.arange(30))
    model.set_params(training="independent", max_memory=75_000)
    with pytest.raises(MemoryError, match="finished weights have grown to"):
        model.fit(X, y)


def test_the_calibration_sample_is_smaller_if_memory_is_bounded():
    X, y = topics(n_rows=3000)
    trellis, weights = Trellis(30, 5), np.ones(3000, np.float32)
    held_out = np.arange(3000) % 2 == 0
    rows = prepare_rows(trellis, X, y, weights, held_out, np.random.RandomState(0))
    assert len(_calibration_sample(trellis, rows)) == 1500
    sample = _calibration_sample(trellis, rows, rows.nbytes + 300_000)
    assert len(sample) > 50
    assert len(sample) * trellis.n_edges * 4 <= 300_000 / 8
    assert len(_calibration_sample(trellis, rows, 1.0)) == 50


def test_history_tells_losses_times_and_error():
    X, y = topics()
    history = TrellisClassifier.paper(4, epochs=3, random_state=0).fit(X, y).history_
    assert len(history.loss) == len(history.seconds) == 3
    assert history.loss[0] > history.loss[1] > history.loss[2] > 0
    assert len(history.training_error) == 1
    assert 0 <= history.training_error[0] < 0.5


def test_training_does_not_touch_the_callers_data():
    X, y = topics()
    before = X.copy(), y.copy()
    TrellisClassifier(learner=Arow(), random_state=0).fit(X, y)
    np.testing.assert_array_equal(X.toarray(), before[0].toarray())
    np.testing.assert_array_equal(y, before[1])


@pytest.mark.parametrize("early_stopping", [False, True])
def test_other_backends_of_joblib_change_nothing(early_stopping):
    """Blocks write into memory that they share, whatever a caller prefers."""
    X, y = topics()
    model = TrellisClassifier(5, early_stopping=early_stopping, random_state=0, n_jobs=2)
    expected = model.fit(X, y).predict_proba(X)
    with joblib.parallel_config(backend="loky"):
        found = model.fit(X, y).predict_proba(X)
    np.testing.assert_array_equal(found, expected)
