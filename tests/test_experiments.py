"""The experiments on a small set: pages, pictures, claims, and a sweep that goes on."""

import json

import pytest
from sklearn.datasets import dump_svmlight_file

import beyond
import output
import run_all
import sets
import sweep
import trade_off
import trials
from data import topics
from peers import PEERS


@pytest.fixture
def small(tmp_path, monkeypatch):
    """A folder with a small set; results and cache go elsewhere, and few peers run."""
    X, y = topics()
    dump_svmlight_file(X[:700], y[:700], str(tmp_path / "train.svm"), zero_based=False)
    dump_svmlight_file(X[700:], y[700:], str(tmp_path / "test.svm"), zero_based=False)
    for module in (trials, output):
        monkeypatch.setattr(module, "RESULTS", tmp_path / "results")
    for module in (trials, trade_off):
        monkeypatch.setattr(module, "CACHE", tmp_path / "cache")
    monkeypatch.setattr(sweep, "SEEDS", (0, 1))
    rows = {
        "ltls": {
            "accuracy": 0.5,
            "top5_accuracy": None,
            "model_bytes": 1000,
            "train_seconds": 1.0,
            "predict_seconds": 0.1,
            "row_microseconds": 50.0,
            "peak_memory_mb": 100.0,
        },
        "pecos": {"failed": "no such package"},
    }
    monkeypatch.setattr(trade_off, "PEERS", {name: PEERS[name] for name in rows})
    monkeypatch.setattr(trade_off, "run_peer", lambda name, *args, **options: rows[name])
    return str(tmp_path)


def test_everything_is_written_and_kept(small, tmp_path, monkeypatch, capsys):
    run_all.main([small])
    shown = capsys.readouterr().out
    assert "holds" in shown
    written = {path.name for path in (tmp_path / "results").iterdir()}
    names = [script.__name__ for script in run_all.SCRIPTS]
    assert {f"{name}.md" for name in [*names, "README"]} <= written
    assert {f"{name}_{tmp_path.name}.png" for name in names} <= written
    page = (tmp_path / "results" / "trade_off.md").read_text(encoding="utf-8")
    assert "no such package" in page, "a peer that fails has a row that says why"
    for name in names:
        page = (tmp_path / "results" / f"{name}.md").read_text(encoding="utf-8")
        assert f"({name}_{tmp_path.name}.png)" in page

    monkeypatch.setattr(trials, "run_trial", lambda spec: pytest.fail("it was kept"))
    run_all.main([small])
    every = (tmp_path / "cache" / "results").iterdir()
    kept = next(path for path in every if "training" in json.loads(path.read_text())["key"])
    kept.write_text(kept.read_text()[:30])  # as a machine that lost power may leave it
    with pytest.raises(pytest.fail.Exception, match="it was kept"):
        run_all.main([small])


def test_an_interrupted_sweep_goes_on(small, monkeypatch):
    specs = [spec for own in beyond.beyond_specs(small).values() for spec in own][:4]
    done = []

    def once(spec):
        if len(done) == 2:
            raise KeyboardInterrupt
        done.append(spec)
        return {"accuracy": 0.5}

    monkeypatch.setattr(trials, "run_trial", once)
    with pytest.raises(KeyboardInterrupt):
        trials.run_trials(specs, "sweep")
    monkeypatch.setattr(trials, "run_trial", lambda spec: done.append(spec) or {"accuracy": 0.6})
    found = trials.run_trials(specs, "sweep")
    assert done == specs
    assert [figures["accuracy"] for figures in found.values()] == [0.5, 0.5, 0.6, 0.6]
    content = json.loads(next((trials.CACHE / "results").iterdir()).read_text())
    assert content["key"]["data"] == small


def test_failures_are_tried_again(small):
    key = trade_off.PeerKey(small, "pecos", 10.0)
    first = trials.run_cached({key: lambda: {"failed": "no network"}}, "peers")
    again = trials.run_cached({key: lambda: {"accuracy": 0.9}}, "peers")
    kept = trials.run_cached({key: lambda: pytest.fail("it was kept")}, "peers")
    assert [next(iter(found.values())) for found in (first, again, kept)] == [
        {"failed": "no network"},
        {"accuracy": 0.9},
        {"accuracy": 0.9},
    ]


def test_intervals_are_students():
    mean, half = output.mean_and_interval([1.0, 2.0, 3.0, 4.0, 5.0])
    assert mean == 3.0
    assert half == pytest.approx(2.776 * (2.5**0.5) / 5**0.5, rel=1e-3)


def test_sets_by_name_and_folder(small, tmp_path):
    data = sets.load_set(small)
    assert data.X.shape[0] == 700
    assert data.n_classes == 30
    folder = sets.write_folder(data, tmp_path / "peers")
    assert sorted(path.name for path in folder.iterdir()) == [
        "labels.npz", "test.npz", "train.npz",
    ]  # fmt: skip
    with pytest.raises(SystemExit, match=r"nor a folder with train\.svm"):
        sets.load_set("nothing")
    bundled = sets.load_set("icd10cm")
    assert bundled.X.shape == (47_041, 48_034)
    assert bundled.n_classes == 1_597
