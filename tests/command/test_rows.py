"""Rows come as the model takes them, or with an error in the words of the command."""

import threading
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import typer

from xtrellis.command.options import Format
from xtrellis.command.rows import (
    BATCH,
    RowOptions,
    _as_they_arrive,
    as_labels,
    read_batches,
    read_labelled,
    read_training,
)

TEXTS = SimpleNamespace(features_=None, classes_=np.array(["a", "b"]))


def features(n_features=3, **attributes):
    """A model of svmlight rows."""
    return SimpleNamespace(n_features_in_=n_features, classes_=np.array([1, 2]), **attributes)


@pytest.fixture
def write(tmp_path):
    def write(content, name="rows.txt"):
        path = tmp_path / name
        path.write_text(content)
        return path

    return write


# ---------------------------------------------------------------------- training rows


def test_texts_to_train_on(write):
    rows, valid = write("a\tone\nb\ttwo\n"), write("b\tthree\n", "valid.txt")
    data = read_training(rows, valid, RowOptions())
    assert (data.X, data.y.tolist()) == (["one", "two"], ["a", "b"])
    assert (data.X_valid, data.y_valid.tolist()) == (["three"], ["b"])
    assert data.first_feature is None


def test_layouts_are_given_or_remembered(write):
    csv = write("1|a|one\n2|b|two\n", "rows.csv")
    options = RowOptions(text_column="3", label_column="2", delimiter="|", header=False)
    assert options.format is Format.csv
    data = read_training(csv, None, options)
    assert (data.X, data.y.tolist()) == (["one", "two"], ["a", "b"])
    model = SimpleNamespace(**vars(TEXTS), layout_=options.layout())
    assert [*read_batches(model, csv, RowOptions())] == [["one", "two"]]
    assert read_labelled(model, csv, RowOptions())[0] == ["one", "two"]
    assert [*read_batches(model, csv, RowOptions(text_column="2"))] == [["a", "b"]]
    assert [*read_batches(model, write("plain, text\n"), RowOptions())] == [["plain, text"]]
    tab = RowOptions(delimiter="tab").layout()
    assert tab == {"delimiter": "\t"} == RowOptions(delimiter="\\t").layout()
    assert RowOptions(Format.tsv).layout() == {}


def test_a_remembered_delimiter_makes_any_file_csv(write):
    """A line taken whole would be another text than the model was trained on, and no error."""
    options = RowOptions(text_column="2", label_column="1", delimiter="|", header=False)
    model = SimpleNamespace(**vars(TEXTS), layout_=options.layout())
    rows = write("a|one\nb|two\n", "rows.txt")
    assert [*read_batches(model, rows, RowOptions())] == [["one", "two"]]
    assert [*read_batches(model, rows, RowOptions(Format.lines))] == [["a|one", "b|two"]]


def test_layouts_that_make_no_sense():
    with pytest.raises(
        typer.BadParameter, match="--delimiter and --no-header are for csv, not for tsv"
    ):
        RowOptions(Format.tsv, header=False)
    with pytest.raises(
        typer.BadParameter, match="--delimiter must be one character, or tab; got 'ab'"
    ):
        RowOptions(delimiter="ab")


def test_features_of_training_and_validation_rows_agree(write):
    rows, valid = write("1 1:1\n2 2:1\n"), write("1 0:1 1:1\n", "valid.txt")
    data = read_training(rows, None, RowOptions())
    assert (data.X.shape, data.first_feature) == ((2, 2), 1)
    with pytest.warns(UserWarning, match="ignored feature 5"):
        data = read_training(rows, write("1 5:1\n", "more.txt"), RowOptions())
    assert data.X_valid.shape == (1, 2)
    data = read_training(rows, valid, RowOptions())
    assert data.X.toarray().tolist() == [[0, 1, 0], [0, 0, 1]]
    assert data.X_valid.toarray().tolist() == [[1, 1, 0]]
    assert data.first_feature == 0
    data = read_training(rows, None, RowOptions(zero_based=True))
    assert (data.X.shape, data.first_feature) == ((2, 3), 0)


def test_training_rows_that_cannot_be_used(write):
    with pytest.raises(ValueError, match="all rows have the label 'a'; two or more are needed"):
        read_training(write("a\tone\na\ttwo\n"), None, RowOptions())
    text = 'text,label\none,"a\tb"\ntwo,c\n'
    with pytest.raises(ValueError, match=r"the label 'a\\tb' contains a tab or a newline"):
        read_training(write(text, "rows.csv"), None, RowOptions())
    with pytest.raises(ValueError, match="these are texts, but training rows are svmlight feat"):
        read_training(write("1 1:1\n2 1:1\n"), write("a\tb\n", "valid.tsv"), RowOptions())
    with pytest.raises(typer.BadParameter, match="--valid: standard input is read for the train"):
        read_training(Path("-"), Path("-"), RowOptions())


@pytest.mark.filterwarnings("default")
def test_labels_that_look_like_texts(write, capsys):
    read_training(write("".join(f"text {n}\ta\n" for n in range(50))), None, RowOptions())
    shown = capsys.readouterr().err
    assert "rows.txt: 50 classes in 50 rows: nearly every row is a class of its own" in shown
    assert shown.endswith("a tsv row is label<TAB>text\n")
    read_training(write("".join(f"{n} 1:1\n" for n in range(50))), None, RowOptions())
    assert "check which part of a row is the label\n" in capsys.readouterr().err


# ---------------------------------------------------------------------- rows for a model


def test_rows_of_the_wrong_kind(write):
    svmlight, text = write("1 1:1\n", "rows.svm"), write("a\tone\n", "rows.tsv")
    with pytest.raises(ValueError, match="these are svmlight features, but the model takes texts"):
        read_labelled(TEXTS, svmlight, RowOptions())
    with pytest.raises(ValueError, match="these are texts, but the model takes svmlight features"):
        read_labelled(features(), text, RowOptions())
    with pytest.raises(ValueError, match="these are texts, but the model takes svmlight features"):
        list(read_batches(features(), text, RowOptions(Format.tsv)))


@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize("option", [None, True, False])
def test_columns_are_those_of_the_model(write, first, option):
    path = write("1 2:1\n")
    options = RowOptions(zero_based=option)
    counted_from = first if option is None else int(not option)
    (X,) = read_batches(features(first_feature_=first), path, options)
    assert X.indices.tolist() == [2 - counted_from]
    X, _ = read_labelled(features(first_feature_=first), path, options)
    assert X.indices.tolist() == [2 - counted_from]


def test_columns_of_a_model_that_does_not_know(write):
    with pytest.raises(ValueError, match="counted from 0 or from 1, which these rows do not show"):
        read_labelled(features(), write("1 2:1\n"), RowOptions())
    # A feature beyond the model's may be an unknown one: it shows nothing.
    with pytest.raises(ValueError, match="counted from 0 or from 1, which these rows do not show"):
        list(read_batches(features(), write("1 3:1\n"), RowOptions()))
    X, _ = read_labelled(features(), write("1 0:1 2:1\n"), RowOptions())
    assert X.indices.tolist() == [0, 2]


def test_labels_take_the_type_of_the_classes():
    y = as_labels(Path("rows"), np.array(["2", "1"]), np.array([1, 2]))
    assert y.tolist() == [2, 1]
    unseen = as_labels(Path("rows"), np.array(["x"]), np.array(["a"]))
    assert unseen.tolist() == ["x"]
    with pytest.raises(ValueError, match="rows: the label 'x' has another type than the model's"):
        as_labels(Path("rows"), np.array(["x"]), np.array([1, 2]))


# ---------------------------------------------------------------------- batches


def test_features_come_in_batches(write):
    path = write("1:1\n" * (BATCH + 1))
    sizes = [X.shape[0] for X in read_batches(features(first_feature_=1), path, RowOptions())]
    assert sizes == [BATCH, 1]


def test_texts_come_as_they_arrive(write):
    go_on = threading.Event()

    def texts():
        yield "one"
        assert go_on.wait(10)
        yield from ["two"] * (BATCH + 5)

    batches = _as_they_arrive(texts())
    assert next(batches) == ["one"], "before the next text is there"
    go_on.set()
    rest = list(batches)
    assert sum(map(len, rest)) == BATCH + 5
    assert max(map(len, rest)) <= BATCH


def test_errors_while_reading_come_after_the_texts_before_them():
    def texts():
        yield "one"
        raise ValueError("line 2 is wrong")

    batches = _as_they_arrive(texts())
    assert next(batches) == ["one"]
    with pytest.raises(ValueError, match="line 2 is wrong"):
        next(batches)
