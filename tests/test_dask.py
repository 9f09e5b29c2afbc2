"""DaskTrellisClassifier on real worker processes: the same bits as one machine."""

import copy
import os
import pickle
import signal
import sys
import threading
import time
from itertools import pairwise

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from clusters import another_worker, bits, killing, local_cluster, slow_svm
from samples import topics
from xtrellis import TrellisClassifier, load_model

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")


@pytest.fixture(scope="module")
def client():
    with local_cluster() as client:
        yield client


@pytest.fixture(scope="module")
def rows():
    return topics(n_classes=40, n_rows=1500)


@pytest.fixture(scope="module")
def local(rows):
    return TrellisClassifier(5, random_state=0).fit(*rows)


@pytest.fixture(scope="module")
def fitted(client, rows):
    return classifier(client).fit(*collections(*rows))


def classifier(client, **parameters):
    from xtrellis.dask import DaskTrellisClassifier

    return DaskTrellisClassifier(5, client=client, random_state=0, **parameters)


def collections(X, y, n_parts=4):
    """Dask arrays of these rows, with sparse blocks."""
    cuts = list(pairwise(np.linspace(0, X.shape[0], n_parts + 1).astype(int)))
    return of_parts([X[a:b] for a, b in cuts]), of_parts([y[a:b] for a, b in cuts])


def of_parts(parts, known=True):
    """Dask array of these parts, whose numbers of rows may be unknown."""
    return da.concatenate(
        [
            da.from_delayed(
                dask.delayed(part), (part.shape[0] if known else np.nan, *part.shape[1:]), meta=part
            )
            for part in parts
        ]
    )


def test_sparse_blocks_give_the_bits_of_one_machine(fitted, local):
    assert bits(fitted) == bits(local)
    assert fitted.n_features_in_ == local.n_features_in_
    assert fitted.selection_ == local.selection_


def test_dense_blocks_and_weights_too(client):
    X, y = topics(n_classes=8, n_rows=300)
    X, weight = X.toarray(), np.linspace(0.5, 2, len(y))
    expected = TrellisClassifier(5, random_state=0).fit(X, y, weight)
    arrays = [da.from_array(each, chunks=(100, *each.shape[1:])) for each in (X, y, weight)]
    assert bits(classifier(client).fit(*arrays)) == bits(expected)


def test_partitions_without_rows_are_ignored(client):
    X, y = topics(n_classes=8, n_rows=300)
    expected = TrellisClassifier(5, random_state=0).fit(X, y)
    cuts = [slice(0, 0), slice(0, 200), slice(200, 200), slice(200, 300)]
    parts, labels = (of_parts([each[cut] for cut in cuts], known=False) for each in (X, y))
    assert parts.numblocks == (4, 1)
    model = classifier(client).fit(parts, labels)
    assert bits(model) == bits(expected)
    np.testing.assert_array_equal(model.predict(parts).compute(), expected.predict(X))
    labels, probabilities = dask.compute(*model.predict_top_k(parts, k=2))
    assert labels.shape == probabilities.shape == (300, 2)


def test_data_frames_keep_their_names(client):
    import pandas as pd

    X, y = topics(n_classes=6, n_features=40, n_rows=200)
    frame = pd.DataFrame(X.toarray(), columns=[f"word {j}" for j in range(40)])
    labels = pd.Series([f"topic {k}" for k in y])
    expected = TrellisClassifier(5, random_state=0).fit(frame, labels)
    parts = dd.from_pandas(frame, npartitions=3), dd.from_pandas(labels, npartitions=3)
    model = classifier(client).fit(*parts)
    assert bits(model) == bits(expected)
    assert list(model.feature_names_in_) == list(frame.columns)
    np.testing.assert_array_equal(model.predict(parts[0]).compute(), expected.predict(frame))


def test_predictions_are_lazy_and_by_partition(fitted, local, rows):
    X, y = rows
    parts, labels = collections(X, y)
    predicted = fitted.predict(parts)
    assert isinstance(predicted, da.Array)
    assert predicted.chunks == (parts.chunks[0],)
    np.testing.assert_array_equal(predicted.compute(), local.predict(X))
    for found, expected in zip(
        dask.compute(*fitted.predict_top_k(parts, k=3)), local.predict_top_k(X, k=3), strict=True
    ):
        np.testing.assert_array_equal(found, expected)
    probabilities = fitted.predict_proba(parts)
    assert probabilities.shape == (len(y), 40)
    np.testing.assert_array_equal(probabilities[:50].compute(), local.predict_proba(X)[:50])
    assert fitted.score(parts, labels) == local.score(X, y)


def test_a_local_copy_needs_no_cluster(fitted, local, rows, tmp_path):
    X, _ = rows
    copy = fitted.to_local()
    assert type(copy) is TrellisClassifier
    assert copy.get_params() == local.get_params()
    np.testing.assert_array_equal(copy.predict(X), local.predict(X))
    np.testing.assert_array_equal(fitted.predict(X), local.predict(X))
    fitted.save(tmp_path / "model.xtrellis")
    assert bits(load_model(tmp_path / "model.xtrellis")) == bits(local)
    assert bits(pickle.loads(pickle.dumps(fitted))) == bits(local)


def test_parameters_are_those_of_the_classifier(client):
    model = classifier(client, C=3.0)
    assert model.get_params()["C"] == 3.0
    again = clone(model.set_params(epochs=7))
    assert again.client is client
    assert (again.C, again.epochs, again.slice_width) == (3.0, 7, 5)
    with pytest.raises(TypeError, match="unexpected keyword argument 'colour'"):
        classifier(client, colour="red")


def test_what_changes_a_model_keeps_its_client(client):
    """Also methods that work on a copy, and learn from rows in memory."""
    X, y = topics(n_classes=8, n_rows=300)
    model = classifier(client, C=1.0, max_classes=20).fit(*collections(X, y))
    assert model.remove_classes([3]).client is client
    assert model.add_classes(X, y).client is client
    assert model.prune(X, y).client is client
    online = classifier(client, learner="arow").partial_fit(X, y, classes=range(8))
    assert online.client is client
    assert copy.copy(model).client is client


def test_a_killed_worker_changes_nothing(client, tmp_path):
    X, y = topics()
    learner = slow_svm(tmp_path, 0.1)
    with killing(client, 4, tmp_path) as killed:
        found = bits(classifier(client, learner=learner).fit(*collections(X, y)))
    assert killed
    learner.seconds = 0.0
    assert bits(TrellisClassifier(5, learner=learner, random_state=0).fit(X, y)) == found


@pytest.mark.parametrize("memory", [None, 1_200_000])
def test_an_interrupt_stops_the_cluster_too(client, tmp_path, memory):
    """After Ctrl-C, blocks under way end, and no others begin."""
    X, y = topics(n_classes=60, n_rows=6000, n_features=3000)
    model = classifier(client, learner=slow_svm(tmp_path, 0.5), calibration=0, assignment="random")

    def interrupt():
        while len(list(tmp_path.iterdir())) < 2:
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        model.fit(*collections(X, y), memory=memory)
    thread.join()
    assert not hasattr(model, "model_")
    deadline = time.monotonic() + 60
    begun = -1
    while begun < (begun := len(list(tmp_path.iterdir()))):
        assert time.monotonic() < deadline
        time.sleep(2)
    assert 2 <= begun < 8
    while leftovers(client):
        assert time.monotonic() < deadline
        time.sleep(0.1)


# ---------------------------------------------------------------------- rows that do not fit


def test_rows_that_do_not_fit_are_trained_from_disk(client):
    """In less memory than the rows would take: the same optimum, found another way."""
    X, y = topics(n_classes=40, n_rows=8000)
    settings = {"C": 1.0, "assignment": "random"}
    local = TrellisClassifier(5, random_state=0, **settings).fit(X, y)
    model = classifier(client, **settings).fit(*collections(X, y), memory=2**21)
    assert bits(model) != bits(local)  # not read into memory after all
    assert np.mean(model.predict(X) == local.predict(X)) > 0.97
    assert abs(model.score(X, y) - local.score(X, y)) < 0.01
    np.testing.assert_array_equal(model.classes_, local.classes_)
    assert leftovers(client) == []


def leftovers(client):
    """Folders of rows that workers still have."""

    def folders(dask_worker):
        from pathlib import Path

        return [str(path) for path in Path(dask_worker.local_directory).glob("xtrellis-*")]

    return [path for found in client.run(folders).values() for path in found]


def test_rows_on_disk_that_fit_are_read_again(client, rows, fitted):
    """With memory enough, the model is that of rows in memory; also from data on the workers."""
    persisted = client.persist(collections(*rows))
    assert bits(classifier(client).fit(*persisted, memory=2**30)) == bits(fitted)


def test_data_frames_on_disk_keep_their_names(client):
    import pandas as pd

    X, y = topics(n_classes=6, n_features=40, n_rows=600)
    frame = pd.DataFrame(X.toarray(), columns=[f"word {j}" for j in range(40)])
    labels = pd.Series([f"topic {k}" for k in y])
    parts = dd.from_pandas(frame, npartitions=3), dd.from_pandas(labels, npartitions=3)
    model = classifier(client).fit(*parts, memory=2**30)
    assert list(model.feature_names_in_) == list(frame.columns)
    assert model.score(*parts) > 0.8


def test_partitions_are_learned_one_after_the_other(client, rows):
    X, y = rows
    settings = {"learner": "arow", "weight_bits": 32}
    model = classifier(client, **settings)
    expected = TrellisClassifier(5, random_state=0, **settings)
    cuts = np.linspace(0, len(y), 5).astype(int)
    for start, stop in pairwise(cuts):
        expected.partial_fit(X[start:stop], y[start:stop], classes=np.arange(40))
    model.partial_fit(*collections(X, y), classes=np.arange(40))
    assert bits(model) == bits(expected)
    # More rows, some of them without weight, and a partition without rows.
    weight = np.linspace(0, 2, 300)
    expected.partial_fit(X[:300], y[:300], sample_weight=weight)
    parts = [[each[:300], each[:0]] for each in (X, y, weight)]
    more, labels, weights = (of_parts(each, known=False) for each in parts)
    model.partial_fit(more, labels, sample_weight=weights)
    assert bits(model) == bits(expected)
    # Rows in memory are learned here.
    assert bits(model.partial_fit(X[:50], y[:50])) == bits(expected.partial_fit(X[:50], y[:50]))


def test_rows_come_to_what_was_learned_if_that_is_larger(rows):
    from xtrellis.dask.on_workers import Learned
    from xtrellis.dask.partitions import Kinds

    X, y = rows
    clf = TrellisClassifier(5, learner="arow", random_state=0)
    states = sum(array.nbytes for state in fitted_states(clf, X, y) for array in state)
    assert sys.getsizeof(Learned(clf, Kinds())) > states > 2 * X.data.nbytes


def fitted_states(clf, X, y):
    return clf.partial_fit(X, y, classes=np.arange(40))._online.states.values()


def test_a_bad_partition_is_named_and_nothing_is_learned(client, rows):
    X, y = collections(*rows)
    model = classifier(client, learner="arow")
    with pytest.raises(
        ValueError, match=r"^partition 0: y holds a label that is not in classes: 39"
    ):
        model.partial_fit(X, y, classes=np.arange(39))
    parts = [dask.delayed(np.zeros((5, 4), dtype)) for dtype in ("f8", "f4")]
    mixed = da.concatenate([da.from_delayed(part, (5, 4), float) for part in parts])
    message = "X has float32 in partition 1, but float64 in partition 0: give all partitions"
    with pytest.raises(ValueError, match=message):
        model.partial_fit(mixed, da.arange(10, chunks=5), classes=np.arange(10))
    with pytest.raises(ValueError, match=message):
        classifier(client).fit(mixed, da.arange(10, chunks=5), memory=2**20)
    empty = da.zeros((0, 4), chunks=(1, 4)), da.zeros(0, chunks=1, dtype=int)
    with pytest.raises(ValueError, match=r"^X has no rows in any partition$"):
        model.partial_fit(*empty, classes=[0, 1])
    with pytest.raises(ValueError, match=r"^X has no rows in any partition$"):
        classifier(client).fit(*empty, memory=2**20)
    with pytest.raises(ValueError, match=r"^sample_weight needs all rows in memory: leave out mem"):
        classifier(client).fit(X, y, y, memory=2**20)
    assert not hasattr(model, "model_")
    assert leftovers(client) == []


# ---------------------------------------------------------------------- bad input


def refused(client, X, y, weight=None):
    with pytest.raises((ValueError, TypeError)) as caught:
        classifier(client).fit(X, y, weight)
    message = str(caught.value)
    assert "\n" not in message
    return message


def test_bad_input_is_refused_in_one_line(client, rows):
    X, y = collections(*rows)
    assert "X must be a dask.array or a dask.dataframe, got csr_matrix" in refused(client, *rows)
    columns = da.from_array(rows[0].toarray(), chunks=(500, 100))
    assert "pass X.rechunk({1: -1})" in refused(client, columns, y)
    empty = da.zeros((0, 4), chunks=(1, 4)), da.zeros(0, chunks=1)
    assert refused(client, *empty) == "X has no rows in any partition"
    parts = [dask.delayed(np.zeros((5, 4), dtype)) for dtype in ("f8", "f4")]
    mixed = da.concatenate([da.from_delayed(part, (5, 4), float) for part in parts])
    message = refused(client, mixed, da.arange(10, chunks=5))
    assert message.startswith("X has float32 in partition 1, but float64 in partition 0: give all")
    assert "y must have the partitions of X, got 2 instead of 4" in refused(
        client, X, y[:100].rechunk(50)
    )
    short = da.from_delayed(dask.delayed(np.zeros(3)), (5,), float)
    message = refused(client, da.zeros((5, 4), chunks=5), short)
    assert message == "partition 0 has 5 rows, but y has 3 there"
    assert "y must have at least two classes" in refused(client, X, da.zeros_like(y))


def test_a_full_disk_is_one_line_and_leaves_nothing(client):
    """The operating system lets workers write files of a few kilobytes only."""
    pytest.importorskip("resource")

    def limit(n_bytes):
        import resource

        most = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
        resource.setrlimit(resource.RLIMIT_FSIZE, (most if n_bytes is None else n_bytes, most))

    X, y = topics(n_classes=40, n_rows=8000)
    model = classifier(client)
    client.run(limit, 10_000)
    try:
        with pytest.raises(OSError, match="nothing was changed: free some space") as caught:
            model.fit(*collections(X, y), memory=2**21)
    finally:
        client.run(limit, None)
    assert "\n" not in str(caught.value)
    assert caught.value.filename.endswith("000000.rows")
    assert leftovers(client) == []
    assert not hasattr(model, "model_")


def test_a_worker_without_the_package_is_named_in_predictions(client, fitted, rows):
    X, _ = collections(*rows)
    with another_worker(client, xtrellis="") as address:
        for method in ("predict", "predict_top_k", "predict_proba"):
            with pytest.raises(ImportError, match=f"^worker {address} has no xtrellis: install"):
                getattr(fitted, method)(X)
    assert len(fitted.predict(X).compute()) == len(rows[1])


def test_a_model_that_is_not_fitted_says_so(client, rows):
    X, _ = collections(*rows)
    for method in ("predict", "predict_top_k"):
        with pytest.raises(NotFittedError):
            getattr(classifier(client), method)(X)


def test_without_a_client_it_says_how_to_make_one(monkeypatch):
    from xtrellis.dask import DaskTrellisClassifier

    monkeypatch.setattr("distributed.get_client", lambda: (_ for _ in ()).throw(ValueError))
    with pytest.raises(ValueError, match="there is no Dask client: make one, "):
        DaskTrellisClassifier().fit(*collections(*topics(n_classes=3, n_rows=30)))
