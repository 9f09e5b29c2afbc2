"""Training from disk gives the model of rows in memory."""

import errno
import os
import shutil
import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from clusters import bits
from samples import topics
from xtrellis import TrellisClassifier, fitting_from_disk
from xtrellis.data import DataError, write_shards
from xtrellis.learning import LinearSVM, from_disk, stored_rows
from xtrellis.learning.stored_rows import spill, survey
from xtrellis.learning.training import train_block
from xtrellis.resuming import kept_blocks


@pytest.fixture(scope="module")
def rows():
    return topics(n_classes=40, n_rows=6000, n_features=3000)


@pytest.fixture(scope="module")
def shards(rows, tmp_path_factory):
    return write_shards([rows], tmp_path_factory.mktemp("rows") / "shards", shard_bytes=20_000)


@pytest.fixture
def always_from_disk(monkeypatch):
    """Rows stay on disk, however much memory there is."""
    monkeypatch.setattr(fitting_from_disk, "_IN_MEMORY", 10**9)


def test_rows_on_disk_are_those_of_memory(rows, shards):
    X, y = rows
    stored = survey(shards)
    assert len(shards) >= 10
    np.testing.assert_array_equal(shards.encoded_labels(), y)
    np.testing.assert_allclose(stored.norms, X.multiply(X).sum(axis=1).A1, rtol=1e-5)
    np.testing.assert_array_equal(stored.lengths, np.diff(X.indptr))
    frequencies = np.bincount(X.indices, minlength=X.shape[1])[stored.features]
    assert (np.diff(frequencies) <= 0).all()
    assert frequencies[-1] > 0
    indptr, indices, data = stored.read(1)
    found = sparse.csr_matrix((data, stored.features[indices], indptr), (len(indptr) - 1, 3000))
    own = X[stored.starts[1] : stored.starts[2]]
    assert (found != own).nnz == 0
    some = np.arange(5, 6000, 77)
    assert (stored.gather(some) != X[some]).nnz == 0


def test_many_features_need_no_table_of_all(shards, monkeypatch):
    expected = survey(shards)
    monkeypatch.setattr(stored_rows, "_DENSE", 10)
    found = survey(shards)
    np.testing.assert_array_equal(found.features, expected.features)
    for one, other in zip(found.read(2), expected.read(2), strict=True):
        np.testing.assert_array_equal(one, other)


def test_sums_of_classes_keep_what_is_largest(rows, shards):
    X, y = rows
    taken = np.arange(len(y)) % 3 > 0
    belongs = sparse.csr_matrix((taken.astype(np.float32), (y, np.arange(len(y)))), (40, len(y)))
    expected = (belongs @ X).toarray()
    stored = survey(shards)
    whole = stored.class_sums(y, taken, 40, 10**6)
    np.testing.assert_allclose(whole.toarray(), expected, rtol=1e-4, atol=1e-6)
    some = stored.class_sums(y, taken, 40, 40 * 20)
    assert some.nnz <= 2 * 40 * 20
    for sums, own in zip(expected, some.toarray(), strict=True):
        assert set(np.argsort(-sums)[:4]) <= set(np.flatnonzero(own))


def test_rows_are_spilled_by_vertex(rows, shards):
    X, y = rows
    stored = survey(shards)
    vertices = np.where(y % 5 == 4, -1, y % 5).astype(np.int32)
    spilled = spill(stored, vertices, 4)
    for vertex in range(4):
        indptr, indices, data = spilled.pieces(vertex).whole()
        own = X[vertices == vertex]
        found = sparse.csr_matrix((data, stored.features[indices], indptr), own.shape)
        assert (found != own).nnz == 0
    spilled.close()


def exact(width=None, **settings):
    """A model that the order of rows hardly changes."""
    settings = {"assignment": "random", "calibration": 0.0, "prune_threshold": 0, **settings}
    learner = LinearSVM(C=1.0, tolerance=1e-3)
    return TrellisClassifier(width, learner=learner, weight_bits=32, random_state=0, **settings)


@pytest.mark.parametrize(("width", "memory"), [(None, 2**26), (3, 2**26), (None, 600_000)])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_the_model_is_that_of_rows_in_memory(
    rows, shards, always_from_disk, monkeypatch, width, memory
):
    """Also with three slices, and with memory for few edges at a time and no vertex as a whole."""
    X, y = rows
    monkeypatch.setattr(from_disk, "_FINISHED", 1e-3)
    in_memory = exact(width).fit(X, y)
    on_disk = exact(width).fit_shards(shards, memory=memory)
    np.testing.assert_array_equal(on_disk.classes_, in_memory.classes_)
    paths = [clf.assignment_.path_of_class for clf in (in_memory, on_disk)]
    np.testing.assert_array_equal(*paths)
    assert (in_memory.predict(X) == on_disk.predict(X)).mean() > 0.99
    assert abs(in_memory.score(X, y) - on_disk.score(X, y)) < 0.005


def test_defaults_are_as_accurate_as_in_memory(rows, shards, always_from_disk):
    X, y = rows
    X_test, y_test = topics(n_classes=40, n_rows=6000, n_features=3000)
    in_memory = TrellisClassifier(random_state=0).fit(X, y)
    on_disk = TrellisClassifier(random_state=0).fit_shards(shards.folder, memory=2**27)
    assert on_disk.n_features_in_ == 3000
    assert on_disk.selection_.trials
    assert on_disk.score(X_test, y_test) > in_memory.score(X_test, y_test) - 0.01
    assert on_disk.history_.training_error[0] < 0.1
    sizes = on_disk.model_.class_sizes.values(40)
    np.testing.assert_array_equal(sizes, np.bincount(y))
    assert len(on_disk.predict_set(X[:3])) == 3


@pytest.mark.filterwarnings("ignore:weights up to")
def test_threads_change_nothing(shards, always_from_disk):
    one, two = (
        TrellisClassifier(C=1.0, n_jobs=n, random_state=0).fit_shards(shards, memory=2**20)
        for n in (1, 2)
    )
    assert bits(one) == bits(two)


def test_weights_dropped_for_lack_of_memory_are_reported(rows, shards):
    with pytest.warns(UserWarning, match=r"weights up to \S+ were dropped to train in 1 MB, where"):
        exact().fit_shards(shards, memory=10**6)


def test_classes_have_weights(rows, shards, always_from_disk):
    X, y = rows
    for weight in ("balanced", {7: 50.0}):
        on_disk = exact(class_weight=weight, epochs=30).fit_shards(shards, memory=2**26)
        in_memory = exact(class_weight=weight).fit(X, y)
        assert (on_disk.predict(X) == in_memory.predict(X)).mean() > 0.98


def test_rows_that_fit_are_trained_in_memory(rows, shards):
    X, y = rows
    on_disk = TrellisClassifier(C=1.0, random_state=0).fit_shards(shards, memory=2**28)
    assert bits(on_disk) == bits(TrellisClassifier(C=1.0, random_state=0).fit(X, y))


def test_what_is_not_solved_is_said(shards, always_from_disk):
    clf = TrellisClassifier(C=1000.0, epochs=1, calibration=0.0, random_state=0)
    with pytest.warns(ConvergenceWarning, match="after 1 epochs before it converged"):
        clf.fit_shards(shards, memory=2**26)


# ---------------------------------------------------------------------- stopped and resumed


def test_only_what_is_left_is_trained(shards, tmp_path, monkeypatch, always_from_disk):
    folder, trained = tmp_path / "blocks", []
    model = TrellisClassifier(7, C=1.0, random_state=0, n_jobs=1)
    expected = bits(model.fit_shards(shards, memory=2**26))

    def failing(*arguments):
        trained.append(arguments[1].vertex)
        if len(trained) == 4:
            raise RuntimeError("out of power")
        return train_block(*arguments)

    monkeypatch.setattr(from_disk, "train_block", failing)
    model.set_params(checkpoint=folder)
    with pytest.raises(RuntimeError, match="out of power"):
        model.fit_shards(shards, memory=2**26)
    kept = list(folder.glob("*.block"))
    assert len(kept) >= 4  # those of the source, and three
    assert bits(model.fit_shards(shards, memory=2**26)) == expected
    assert len(set(trained[4:])) == len(trained[4:])
    assert set(trained[:3]).isdisjoint(trained[4:])
    assert list(folder.iterdir()) == []


def test_the_checkpoint_of_other_shards_is_refused(rows, shards, tmp_path, always_from_disk):
    X, y = rows
    others = write_shards([(X * 2, y)], tmp_path / "others", shard_bytes=20_000)
    folder = tmp_path / "blocks"
    model = TrellisClassifier(7, C=1.0, random_state=0, checkpoint=folder)
    claim = claim_of(model, shards)
    (folder / "checkpoint.json").write_text(claim)
    message = refusal(model.fit_shards, others, memory=2**26)
    assert "is the checkpoint of another training (of other rows or labels)" in message
    model.fit_shards(shards, memory=2**26)


def test_labels_that_changed_places_are_other_labels(tmp_path):
    X = np.eye(4)
    one, other = (
        write_shards([(X, labels)], tmp_path / "".join(labels))
        for labels in (["a", "b", "a", "b"], ["b", "a", "b", "a"])
    )
    assert one.digest() != other.digest()
    again = write_shards([(X, ["a", "b", "a", "b"])], tmp_path / "again")
    assert one.digest() == again.digest()


def test_rows_that_stand_for_none_do_not_calibrate_alone(
    rows, shards, always_from_disk, monkeypatch
):
    """If all rows drawn weigh nothing, they count alike."""
    monkeypatch.setattr(
        fitting_from_disk, "held_out_weights", lambda y, held_out, numbers: np.zeros(len(numbers))
    )
    X, y = rows
    clf = TrellisClassifier(7, C=1.0, random_state=0).fit_shards(shards, memory=2**26)
    assert np.isfinite(clf.predict_proba(X[:50])).all()
    assert clf.score(X, y) > 0.9


def test_a_checkpoint_of_rows_on_disk_is_not_one_of_rows_in_memory(rows, tmp_path, monkeypatch):
    shards = write_shards([rows], tmp_path / "shards", shard_bytes=20_000)
    model = TrellisClassifier(7, C=1.0, random_state=0, checkpoint=tmp_path / "blocks")
    claim = claim_of(model, shards)
    (tmp_path / "blocks" / "checkpoint.json").write_text(claim)
    message = refusal(model.fit_shards, shards, memory=2**30)
    assert "(memory='less than the rows need' there, not set here)" in message


def claim_of(model, shards):
    """What a checkpoint says about a training while it goes on."""
    with kept_blocks(model, shards):
        return (model.checkpoint / "checkpoint.json").read_text()


# ---------------------------------------------------------------------- bad input


def refusal(call, *arguments, error=ValueError, **options):
    with pytest.raises(error) as caught:
        call(*arguments, **options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_what_cannot_be_trained_from_disk_is_named(shards):
    for settings, message in [
        ({"learner": "arow"}, "is for learner='svm', got learner='arow': learn with partial_fit"),
        ({"training": "independent"}, "needs training='local', got 'independent'"),
        ({"slice_width": "auto"}, "needs a number for slice_width, or None; got 'auto'"),
        ({"early_stopping": True}, "needs early_stopping=False, got True"),
        ({"checkpoint": "x"}, "checkpoint needs a number for random_state"),
        ({"class_weight": {3: 0.0}}, "class_weight must be positive for rows on disk, got 0 for 3"),
    ]:
        clf = TrellisClassifier(**settings)
        assert message in refusal(clf.fit_shards, shards, memory=10**6)
        assert not hasattr(clf, "model_")
    assert (
        "0.0 MB of memory are too little for 6,000 rows in shards of up to 976, which"
        in refusal(TrellisClassifier().fit_shards, shards, memory=1000)
    )
    assert "memory must be an integer" in refusal(TrellisClassifier().fit_shards, shards, memory=0)


def test_one_class_is_too_few(tmp_path):
    shards = write_shards([(np.eye(3), ["a"] * 3)], tmp_path)
    message = refusal(TrellisClassifier().fit_shards, shards)
    assert message.endswith("at least two classes are needed, got ['a']")


def test_a_shard_cut_short_is_named(rows, tmp_path, always_from_disk):
    shards = write_shards([rows], tmp_path, shard_bytes=20_000)
    path = tmp_path / "000003.rows"
    path.write_bytes(path.read_bytes()[:-50])
    message = refusal(TrellisClassifier().fit_shards, shards, memory=2**26, error=DataError)
    assert message.startswith(f"{path}: ")
    path.unlink()
    message = refusal(TrellisClassifier().fit_shards, shards, memory=2**26, error=DataError)
    assert message == f"{path}: this shard is missing; convert the rows again"


@pytest.mark.parametrize("memory", [2**26, 600_000])
def test_shards_that_change_while_they_are_trained_on_are_named(
    rows, tmp_path, always_from_disk, monkeypatch, memory
):
    """With features that were not there before, kernels would write where they must not."""
    X, y = rows
    some = X.multiply(np.arange(X.shape[1]) < 1500).tocsr()
    some.eliminate_zeros()
    shards = write_shards([(some, y)], tmp_path / "rows", shard_bytes=20_000)
    path, surveyed = tmp_path / "rows" / "000000.rows", fitting_from_disk.survey

    def survey_and_change(shards):
        found = surveyed(shards)
        n_rows = shards.counts[0]
        write_shards([(X[:n_rows], y[:n_rows])], tmp_path / "changed")
        shutil.copy(tmp_path / "changed" / path.name, path)
        return found

    monkeypatch.setattr(fitting_from_disk, "survey", survey_and_change)
    clf = TrellisClassifier(C=1.0, random_state=0)
    message = refusal(clf.fit_shards, shards, memory=memory, error=DataError)
    assert message == f"{path}: this shard was changed while it was trained on; train again"
    assert not hasattr(clf, "model_")


def test_a_full_disk_is_one_line_and_leaves_nothing(rows, tmp_path, always_from_disk, monkeypatch):
    shards = write_shards([rows], tmp_path, shard_bytes=20_000)
    before = sorted(tmp_path.iterdir())
    if not os.path.exists("/dev/full"):
        pytest.skip("needs /dev/full")

    def full(dir):
        return open("/dev/full", "w+b", buffering=2**20)

    monkeypatch.setattr(stored_rows.tempfile, "TemporaryFile", full)
    clf = TrellisClassifier(8, C=1.0, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(OSError) as caught:
            clf.fit_shards(shards, memory=2**26)
    assert caught.value.errno == errno.ENOSPC
    assert caught.value.filename == str(tmp_path)
    assert "training needs as much room there as the rows take; free some" in str(caught.value)
    assert sorted(tmp_path.iterdir()) == before
    assert not hasattr(clf, "model_")


@pytest.mark.filterwarnings("ignore:weights up to")
def test_rows_of_which_none_fits_its_share_of_memory(tmp_path):
    """A few, but long: one is held out, and there are vertices without one."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 2000)), np.arange(40) % 4
    X[np.arange(40), y] += 40
    shards = write_shards([(X, y)], tmp_path / "rows", shard_bytes=16_000)
    clf = TrellisClassifier(C=1.0, random_state=0).fit_shards(shards, memory=400_000)
    assert clf.score(X, y) > 0.9


@pytest.mark.parametrize("n_rows", [6, 600])
def test_rows_that_are_all_empty(tmp_path, always_from_disk, n_rows):
    """Of which nothing can be learned but how frequent the classes are."""
    X, y = sparse.csr_matrix((n_rows, 3), dtype=np.float32), np.arange(n_rows) % 3 == 0
    shards = write_shards([(X, y.astype(int))], tmp_path, shard_bytes=100)
    assert (TrellisClassifier(random_state=0).fit_shards(shards).predict(X) == 0).all()


def test_more_epochs_solve_what_is_hard(tmp_path, always_from_disk):
    """As the warning says: rows that contradict each other, with a large C."""
    X = np.repeat([[1.0, 0.0], [0.0, 1.0]], 50, axis=0).astype(np.float32)
    y = np.r_[np.arange(50) % 10 == 0, np.arange(50) % 10 != 0].astype(int)
    shards = write_shards([(X, y)], tmp_path, shard_bytes=200)
    settings = {"C": 100.0, "calibration": 0.0, "weight_bits": 32, "random_state": 0}
    with pytest.warns(ConvergenceWarning, match="raise epochs or lower C"):
        TrellisClassifier(**settings).fit_shards(shards)
    patient = TrellisClassifier(epochs=2000, **settings).fit_shards(shards)
    expected = TrellisClassifier(**settings).fit(X, y)
    # As near as the tolerance asks for: next to the losses, weights of this size count little.
    np.testing.assert_allclose(patient.margins(X), expected.margins(X), atol=0.1)
