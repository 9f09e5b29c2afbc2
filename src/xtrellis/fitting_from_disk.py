"""``fit_shards``: training from a folder of rows that may be larger than memory.

What happens is what ``fitting`` does, in the same order, with labels of all rows in memory and the
rows themselves on disk. Whatever looks at rows beside training is given some of them: at most 5,000
that are held out to calibrate, and at most 10,000 of some classes to choose settings by. Which
classes are alike is told by the sums of their rows, of which the largest entries are kept.
"""

from __future__ import annotations

import math
import os
import warnings
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.utils import check_random_state

from ._arrays import Float32Array, IntArray
from ._changing import built_aside
from ._checks import check_integer, class_weights
from ._memory import release_memory
from ._progress import training_progress
from .choosing import Choice, choose_on, first_settings
from .engine import ENOUGH, Engine, in_units_of_rows
from .fitting import (
    HELD_OUT_SAMPLE,
    SAMPLE,
    FittedTrellis,
    LabelledRows,
    check_settings,
    trellis_for,
)
from .held_out import Fold, floor_of, settled, verdict_of
from .learning.from_disk import DiskRows, Setting, train_edges_from_disk
from .learning.learners import Learner, LinearSVM
from .learning.rows import held_out_weights, hold_out_rows
from .learning.stored_rows import survey
from .model.packed_arrays import Counts
from .resuming import check_checkpoint, kept_blocks

if TYPE_CHECKING:
    from .classifier import TrellisClassifier
    from .data.shards import Shards

MEMORY = 2**30
_RESERVE = 10  # share of the memory that is left for what is not counted
_IN_MEMORY = 8  # times the size of the rows: what ``fit`` takes
_SUMS = 32  # shares of the memory: for the sums that tell which classes are alike,
_CHOOSING = 64  # for those that settings are tried on, within the limits of ``choosing``,
_AT_MOST = 4  # times as much, where the two classes that there must be have more rows,
_HELD_OUT = 32  # and for those that are held out


class ShardsMixin:
    """The method by which a classifier learns from rows on disk."""

    def fit_shards(self, shards: Shards | str | os.PathLike[str], *, memory: int = MEMORY) -> Self:
        r"""Train on a folder of rows that may be larger than memory.

        Rows that ``fit`` can take within ``memory`` are read, and the model is that of ``fit``.
        Others stay on disk: the model is then the same up to the solver's tolerance, if settings
        and the order of the classes are given; those that are chosen may differ, as they are chosen
        by a part of the rows. Only for the SVM with local training; others learn by
        :meth:`partial_fit`, shard by shard.

        Parameters
        ----------
        shards : Shards or path
            A folder that :func:`~xtrellis.data.write_shards` made. It should be on a disk with room
            for a second copy of the rows, which is there while training runs.
        memory : int, default=2**30
            Bytes to work with, besides those of the interpreter and the libraries. Training is
            faster with more.

        Examples
        --------
        >>> import io, tempfile
        >>> from xtrellis import TrellisClassifier
        >>> from xtrellis.data import write_shards
        >>> file = io.BytesIO(b"cat 1:1 3:1\ndog 2:1\n" * 10)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     shards = write_shards(file, folder)
        ...     clf = TrellisClassifier(random_state=0).fit_shards(shards)
        ...     [clf.score(X, y) for X, y in shards]
        [1.0]
        """
        from .data.shards import as_shards

        check_integer("memory", memory, 1)
        shards = as_shards(shards)
        if len(shards.classes) < 2:
            found = shards.classes.tolist()
            raise ValueError(f"{shards.folder}: at least two classes are needed, got {found}")
        if not shards.n_features:
            raise ValueError(f"{shards.folder}: no row has any feature")
        if memory_to_fit(shards) <= memory:
            return self.fit(*shards.in_memory())  # type: ignore[attr-defined]
        with built_aside(self, fresh=True) as new:
            estimator: Any = new
            learner = check_settings(estimator)
            check_checkpoint(estimator, learner)
            with kept_blocks(estimator, shards):
                fitted = fit_from_disk(estimator, learner, shards, memory)
            estimator.model_, estimator.history_ = fitted.model, fitted.history
            estimator.held_out_loss_ = fitted.held_out_loss
            estimator.prune_threshold_ = fitted.threshold
            estimator.n_features_in_ = shards.n_features
            if fitted.selection is not None:
                estimator.selection_ = fitted.selection
        return self


def memory_to_fit(shards: Shards) -> int:
    """Bytes that ``fit`` takes for these rows, about."""
    return _IN_MEMORY * shards.nbytes


def fit_from_disk(
    estimator: TrellisClassifier, learner: Learner, shards: Shards, memory: int
) -> FittedTrellis:
    """Train a trellis as an estimator's parameters say, in so much memory."""
    svm, given = _checked_learner(estimator, learner), memory
    memory -= memory // _RESERVE
    rng = check_random_state(estimator.random_state)
    y_encoded, classes = shards.encoded_labels(), shards.classes
    weights = _class_weights(estimator, shards, y_encoded)
    stored = survey(shards)
    svm = in_units_of_rows(estimator, svm, stored.norms, weights[y_encoded])
    _check_memory(shards, len(stored.features), given)
    a_row = 8 * max(stored.n_values / stored.n_rows, 1)
    most = max(1, int(min(HELD_OUT_SAMPLE, memory / _HELD_OUT / a_row)))
    share = min(estimator.calibration, most / stored.n_rows)
    held_out = hold_out_rows(y_encoded, share, rng)
    rows = DiskRows(stored, y_encoded, weights, held_out)
    trellis = trellis_for(estimator, len(classes))
    drawn = np.sort(rng.permutation(np.flatnonzero(held_out))[:most])
    seed = int(rng.randint(2**31))

    def labelled(numbers: IntArray) -> LabelledRows:
        own = y_encoded[numbers]
        return LabelledRows(stored.gather(numbers), own, weights[own], classes)

    sample = labelled(drawn) if len(drawn) else None
    release_memory()
    sums = stored.class_sums(y_encoded, ~held_out, len(classes), int(memory / _SUMS / 8))
    alike = LabelledRows(sums, np.arange(len(classes)), weights, classes)
    empty = alike[np.empty(0, np.int64)]
    none = np.zeros(len(classes), bool)
    engine = Engine(estimator, svm, alike, none, trellis, sample or empty, seed)
    release_memory()
    choice = _choose(engine, rows, labelled, memory)
    release_memory()
    assert isinstance(choice.learner, LinearSVM)
    with training_progress(estimator.verbose) as report:
        setting = Setting(
            choice.learner,
            estimator.epochs,
            estimator.n_jobs,
            seed,
            floor_of(estimator) if held_out.any() else 0.0,
            memory,
            report,
        )
        trellis, paths = choice.engine.trellis, choice.assignment.path_of_class
        trained, dropped = train_edges_from_disk(trellis, rows, paths, setting)
    edges, history = trained.weights, trained.history
    folds = []
    if trained.before is not None:
        before = choice.engine.model(choice.assignment, trained.before)
        counts = held_out_weights(y_encoded, held_out, drawn)
        counts = engine.sample.sample_weight * (counts if counts.any() else 1)
        folds.append(Fold(before, none, replace(engine.sample, sample_weight=counts)))
        del before
    del rows, trained
    release_memory()
    verdict = verdict_of(estimator, alike, folds, are_sums=True)
    threshold = verdict.threshold
    edges = edges.above(threshold)
    model = settled(estimator, choice.engine.model(choice.assignment, edges), alike, verdict)
    del verdict, edges, alike, empty, engine, sample  # weights of a second model, and rows
    if dropped > threshold:
        warnings.warn(
            f"weights up to {dropped:.2g} were dropped to train in {given / 1e6:.0f} MB, where "
            f"only those up to {threshold:.2g} are too small to matter: more memory gives a better "
            f"model",
            stacklevel=2,
        )
    sizes = np.bincount(y_encoded, minlength=len(classes))
    model = replace(model, class_sizes=Counts.of(sizes))
    selection = choice.selection
    del choice
    release_memory()
    some = labelled(np.sort(rng.permutation(len(y_encoded))[: min(SAMPLE, most)]))
    wrong = model.classify(some.X) != some.y_encoded
    history.training_error.append(float(np.average(wrong, weights=some.sample_weight)))
    return FittedTrellis(model, history, selection=selection, threshold=threshold)


def _choose(engine: Engine, rows: DiskRows, labelled: Any, memory: int) -> Choice:
    """The settings that are the best on some classes, with all their rows."""
    engine = engine.with_usual_order()
    if not engine.chooses:
        return first_settings(engine)
    most_values = memory // _CHOOSING // 8
    classes = engine.sampled_classes(rows.y_encoded, rows.stored.n_values, most_values)
    numbers = np.flatnonzero(np.isin(rows.y_encoded, classes))
    shuffled = np.random.RandomState(engine.seed).permutation(numbers)
    sizes = np.cumsum(rows.stored.lengths[shuffled], dtype=np.int64)
    if sizes[-1] > _AT_MOST * most_values:
        numbers = np.sort(shuffled[sizes <= _AT_MOST * most_values])
        if len(np.unique(rows.y_encoded[numbers])) < len(classes):
            return first_settings(engine)
    small = engine.on_classes(classes, labelled(numbers))
    if len(small.sample.y_encoded) < ENOUGH:
        return first_settings(engine)
    return choose_on(small, engine, rows.stored.n_values)


# ---------------------------------------------------------------------- checks


def _checked_learner(estimator: TrellisClassifier, learner: Learner) -> LinearSVM:
    """The SVM, or an error that says what cannot be trained from disk."""
    where = "fit_shards in less memory than the rows need"
    if not isinstance(learner, LinearSVM):
        raise ValueError(
            f"{where} is for learner='svm', got learner={estimator.learner!r}: learn with "
            f"partial_fit, shard by shard, or give it more memory"
        )
    for name, wanted in (("training", "local"), ("early_stopping", False)):
        if getattr(estimator, name) != wanted:
            given = getattr(estimator, name)
            raise ValueError(f"{where} needs {name}={wanted!r}, got {given!r}")
    if estimator.slice_width == "auto":
        raise ValueError(f"{where} needs a number for slice_width, or None; got 'auto'")
    return learner


def _check_memory(shards: Shards, n_features: int, memory: int) -> None:
    """Raise an error if not even one edge could be trained."""
    largest = shards.nbytes * max(shards.counts) // max(shards.n_rows, 1)
    least = 4 * largest + 40 * shards.n_rows + 16 * n_features
    least += least // (_RESERVE - 1)
    if memory < least:
        given, needed = f"{memory / 1e6:.1f} MB", f"{math.ceil(least / 1e5) / 10:.1f} MB"
        raise ValueError(
            f"{shards.folder}: {given} of memory are too little for {shards.n_rows:,} rows in "
            f"shards of up to {max(shards.counts):,}, which need {needed}: give more, or convert "
            f"the rows to smaller shards"
        )


def _class_weights(
    estimator: TrellisClassifier, shards: Shards, y_encoded: IntArray
) -> Float32Array:
    """How much a row of each class counts."""
    classes = shards.classes
    if estimator.class_weight is None:
        return np.ones(len(classes), np.float32)
    if estimator.class_weight == "balanced":
        sizes = np.bincount(y_encoded, minlength=len(classes))
        return (len(y_encoded) / (len(classes) * sizes)).astype(np.float32)
    weights = class_weights(estimator.class_weight, classes, classes)
    if not (weights > 0).all():
        label = classes[weights <= 0][:1].tolist()[0]
        raise ValueError(f"class_weight must be positive for rows on disk, got 0 for {label!r}")
    return weights
