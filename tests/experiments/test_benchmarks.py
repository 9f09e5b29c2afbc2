"""The benchmarks run on a small set and print a row per setting; their times are not looked at."""

import importlib
import warnings

import numpy as np
import pytest
from sklearn.datasets import dump_svmlight_file

from samples import NOUNS, reports, topics

# For each benchmark the settings that it prints for the small set, in order.
PRINTED = {
    "bench_accuracy": ["all defaults"],
    "bench_defaults --systems xtrellis": ["| accuracy | top-5 |", "| xtrellis |", " MB |"],
    "bench_decoding": ["0.0", "0.25", "0.5", "0.75", "1.0"],
    "bench_predict": ["| set | all margins µs |", "| small"],
    "bench_pruning": ["all defaults", "0.005"],
    "bench_width_selection": ["paper: b =", "test accuracy", "local: b =", "test accuracy"],
    "bench_widths": ["<- default", "| data | K |", "** ("],
    "bench_readers": ["700 rows", "scikit-learn", "load_icd10cm", "load_wordnet"],
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("small")
    X, y = topics()
    dump_svmlight_file(X[:700], y[:700], str(folder / "train.svm"), zero_based=False)
    dump_svmlight_file(X[700:], y[700:], str(folder / "test.svm"), zero_based=False)
    return folder


@pytest.mark.parametrize("command", PRINTED)
def test_benchmark_runs(command, folder, monkeypatch, capsys):
    name, *options = command.split()
    monkeypatch.setattr("sys.argv", [f"{name}.py", str(folder), *options])
    importlib.import_module(name).main()
    printed = capsys.readouterr().out
    at = 0
    for words in PRINTED[command]:
        at = printed.index(words, at) + len(words)


def test_descriptions_of_classes_are_measured(monkeypatch, capsys):
    bench = importlib.import_module("bench_class_texts")
    texts, labels = reports()
    small = bench.Described(texts, labels, texts, labels, {noun: noun for noun in NOUNS}, {})
    monkeypatch.setitem(bench.SETS, "small", lambda: small)
    monkeypatch.setattr("sys.argv", ["bench_class_texts.py", "small"])
    with np.errstate(invalid="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # there is no class of the tail
        bench.main()
    assert [line.split()[1] for line in capsys.readouterr().out.splitlines()[1:]] == [
        "without",
        "with",
    ]


def test_features_of_texts_are_compared(tmp_path, monkeypatch, capsys):
    texts, labels = reports(60)
    rows = tmp_path / "rows.tsv"
    rows.write_text("".join(f"{a}\t{b}\n" for a, b in zip(labels, texts, strict=True)))
    monkeypatch.setattr("sys.argv", ["bench_text.py", str(rows)])
    importlib.import_module("bench_text").main()
    printed = capsys.readouterr().out
    assert printed.count("vocabulary") == printed.count("hashes") == 2
    assert "one text to its label" in printed


def test_terms_are_compared(tmp_path, monkeypatch, capsys):
    texts, labels = reports(700)
    for part, rows in (("train", slice(600)), ("test", slice(600, None))):
        pairs = zip(labels[rows], texts[rows], strict=True)
        (tmp_path / f"{part}.txt").write_text("".join(f"{a}\t{b}\n" for a, b in pairs))
    monkeypatch.setattr("sys.argv", ["bench_terms.py", str(tmp_path)])
    importlib.import_module("bench_terms").main()
    printed = capsys.readouterr().out.splitlines()[2:]
    assert len(printed) == 5
    assert "**chosen**" in printed[0]
    assert "words 1-2 (25 %) and characters 1-4" in printed[3]


def test_sets_are_found_by_name_in_the_folder_of_the_environment(folder, monkeypatch):
    common = importlib.import_module("common")
    with pytest.raises(SystemExit, match="nor a folder with train"):
        common.load_set(folder.name)
    monkeypatch.setenv("XTRELLIS_DATA", str(folder.parent))
    assert common.load(folder.name)[0].shape[0] == 700
    assert {"icd10cm", "wordnet_hypernym", folder.name} <= {*common.known_sets()}


def test_sets_of_texts_become_terms_of_characters(tmp_path):
    for part, n in (("train", 4), ("test", 2)):
        (tmp_path / f"{part}.txt").write_text("7\tabcd abc\n9\txyz xy\n" * n)
    data = importlib.import_module("common").load_set(str(tmp_path))
    assert data.X.shape[0] == 8
    assert data.X_test.shape == (4, data.X.shape[1])
    assert data.y_test.tolist() == [0, 1] * 2
    assert data.texts[1][:2] == ["abcd abc", "xyz xy"]


def test_a_line_for_every_figure_in_which_another_system_is_ahead():
    bench = importlib.import_module("bench_defaults")
    rows = {
        "xtrellis": {"accuracy": 0.8, "model_bytes": 1e6, "tail_accuracy": None},
        "ensemble": {"accuracy": 0.9},
        "pecos": {"accuracy": 0.81, "model_bytes": 2e6, "tail_accuracy": 0.5},
        "bonsai": {"failed": "stopped"},
    }
    (line,) = bench.lines_ahead("small", rows)
    assert line == "- small, accuracy: PECOS XR-Linear 81.00 %, xtrellis 80.00 %"


def test_documents_are_long_and_of_unit_length():
    X, y = importlib.import_module("common").long_rows(200, 10, 1000)
    assert X.shape == (200, 1000)
    assert 60 < X.nnz / 200 <= 200
    assert y.max() < 10
    assert abs(X.multiply(X).sum(axis=1) - 1).max() < 1e-5


def test_workers_of_a_cluster_are_measured(folder, monkeypatch, capsys):
    pytest.importorskip("distributed")
    bench = importlib.import_module("bench_dask")
    monkeypatch.setattr(bench, "SETTINGS", {"C = 1": {"C": 1.0}})
    monkeypatch.setattr(bench, "COUNTS", (2,))
    monkeypatch.setattr("sys.argv", ["bench_dask.py", str(folder)])
    bench.main()
    rows = [line for line in capsys.readouterr().out.splitlines() if line.startswith("| C = 1")]
    assert [line.split(" | ")[1] for line in rows] == ["2 threads", "2 workers"]
    assert len(rows[1].split(" | ")[3].split(", ")) == 2
