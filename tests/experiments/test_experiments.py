"""The experiments on a small set: pages, plots, claims, and sweeps that are resumed."""

import json
import threading

import pytest
from sklearn.datasets import dump_svmlight_file

import beyond
import bound
import decoding_losses
import margins
import output
import run_all
import sets
import sparse_models
import sweep
import trade_off
import trials
from peers import PEERS
from samples import topics
from xtrellis.data import DataError
from xtrellis.data.downloads import DownloadError


@pytest.fixture
def small(tmp_path, monkeypatch):
    """A folder with a small set; results and cache go elsewhere, and few peers run."""
    X, y = topics(n_classes=12, n_rows=500)
    dump_svmlight_file(X[:400], y[:400], str(tmp_path / "train.svm"), zero_based=False)
    dump_svmlight_file(X[400:], y[400:], str(tmp_path / "test.svm"), zero_based=False)
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
    folder = tmp_path / "results" / "own" / tmp_path.name
    assert str(folder) in shown
    assert [path.name for path in (tmp_path / "results").iterdir()] == ["own"]
    written = {path.name for path in folder.iterdir()}
    names = [script.__name__ for script in run_all.SCRIPTS]
    assert {f"{name}.md" for name in [*names, "README"]} <= written
    assert {f"{name}_{tmp_path.name}.png" for name in names} <= written
    page = (folder / "trade_off.md").read_text(encoding="utf-8")
    assert "no such package" in page, "a peer that fails has a row that says why"
    for name in names:
        page = (folder / f"{name}.md").read_text(encoding="utf-8")
        assert f"({name}_{tmp_path.name}.png)" in page

    monkeypatch.setattr(trials, "run_trial", lambda spec: pytest.fail("it was kept"))
    run_all.main([small])
    shown = capsys.readouterr().err
    assert "LTLS: 2 of 2 kept" in shown
    assert "0/0" not in shown
    every = (tmp_path / "cache" / "results").iterdir()
    kept = next(path for path in every if "training" in json.loads(path.read_text())["key"])
    kept.write_text(kept.read_text()[:30])  # as a machine that lost power may leave it
    with pytest.raises(pytest.fail.Exception, match="it was kept"):
        run_all.main([small])


def test_an_interrupted_sweep_is_resumed(small, monkeypatch):
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
    assert data.X.shape[0] == 400
    assert data.n_classes == 12
    folder = sets.write_folder(data, tmp_path / "peers")
    assert sorted(path.name for path in folder.iterdir()) == [
        "labels.npz", "test.npz", "train.npz",
    ]  # fmt: skip
    with pytest.raises(SystemExit, match=r"nor a folder with train\.svm"):
        sets.load_set("nothing")
    bundled = sets.load_set("icd10cm")
    assert bundled.X.shape == (47_041, 48_034)
    assert bundled.n_classes == 1_597


def test_only_the_default_sets_write_to_the_pages_of_the_repository(tmp_path, monkeypatch):
    assert output.results_folder(["icd10cm", "wordnet_hypernym"]) == trials.RESULTS
    own = trials.RESULTS / "own"
    assert output.results_folder(["icd10cm"]) == own / "icd10cm"
    assert (
        output.results_folder(["wordnet_hypernym", "icd10cm"]) == own / "wordnet_hypernym-icd10cm"
    )
    monkeypatch.chdir(tmp_path)
    assert output.results_folder(["."]) == own / tmp_path.name


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (
            KeyboardInterrupt(),
            130,
            "stopped; finished trials are kept, and the same command resumes",
        ),
        (DownloadError("no network"), 1, "no network"),
        (DataError("train.svm:3: not a number"), 1, "train.svm:3: not a number"),
    ],
)
@pytest.mark.parametrize("script", [*run_all.SCRIPTS, run_all])
def test_scripts_end_with_one_line(script, error, code, line, monkeypatch, capsys):
    def load(name):
        raise error

    monkeypatch.setattr(trials, "load_set", load)
    monkeypatch.setattr(sweep, "load_set", load)
    monkeypatch.setattr("sys.argv", ["script", "sector"])
    with pytest.raises(SystemExit) as ended:
        output.run(script.main, "A script.")
    shown = capsys.readouterr().err
    assert ended.value.code == code
    assert shown.startswith(line)
    assert shown.count("\n") == 1


def test_text_is_to_the_left_and_numbers_to_the_right():
    rows = [
        ["LTLS", "ours; defaults", "77.31 ± 0.38", "1,676", "2.1 x", "409 MB peak", "–"],
        ["other", "theirs", "–", "1e+03", "12.0 x", "stopped after 200 s", "–"],
    ]
    sides = output.table(list("abcdefg"), rows).splitlines()[1]
    assert sides == "| --- | --- | ---: | ---: | ---: | --- | ---: |"


def test_the_bar_counts_what_is_missing(small, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    keys = [trade_off.PeerKey(small, "ltls", float(seconds)) for seconds in range(3)]
    trials.run_cached({keys[0]: lambda: {"accuracy": 0.9}}, "peers")
    assert "peers" in (shown := capsys.readouterr().err)
    assert "1/1" in shown
    trials.run_cached({key: lambda: {"accuracy": 0.8} for key in keys}, "peers")
    assert "2/2" in capsys.readouterr().err


def test_an_interruption_stops_what_runs_in_other_threads(small):
    """The first of two interrupts; the other waits until it is stopped, as a peer would."""
    ended, waiting = threading.Event(), threading.Event()

    def interrupt():
        assert waiting.wait(10)
        raise KeyboardInterrupt

    def wait():
        waiting.set()
        assert ended.wait(10), "nobody stopped it"
        return {"accuracy": 0.9}

    first, second = (trade_off.PeerKey(small, name, 10.0) for name in ("ltls", "pecos"))
    with pytest.raises(KeyboardInterrupt):
        trials.run_cached({first: interrupt, second: wait}, "peers", workers=2, stop=ended.set)
    assert ended.is_set()


def test_a_claim_that_does_not_hold_says_why():
    margin = margins._claim("x", {2: 1.0, 3: 1.25, 5: 1.2})
    assert not margin.holds
    assert str(margin).endswith("; but -0.05 from b = 3 to b = 5")
    assert margins._claim("x", {2: 1.0, 3: 1.25}).numbers == "1.00 at b = 2, 1.25 at b = 3"
    gain = beyond._gain("x", "better", {2: 3.0, 5: 1.0}, {2: 2.0, 5: 1.5})
    assert str(gain) == "DOES NOT HOLD: better, +1.00 at b = 2, -0.50 at b = 5; but not at b = 5"
    pruned = {b: {"nonzeros": 10, "pruned": {"nonzeros": b}} for b in (2, 5)}
    (claim,) = sparse_models._claims("x", {"W-LTLS": pruned})
    assert claim.numbers.endswith("; but no fewer are left at b = 5")
    shares = {(5, loss): [0.9 if loss == "hinge" else 0.5] for loss in trials.LOSSES}
    best, gains = decoding_losses._claims("x", [5], shares)
    assert best.numbers.endswith("; but hinge is best")
    assert gains.numbers == "+0.00 points at b = 5"


def bound_claims(losses, bounds, accuracy):
    """Claims of the bound, of figures at widths 2, 3 and 5."""
    widths = (2, 3, 5)[: len(losses)]
    loss_of = dict(zip(widths, losses, strict=True))
    bounds = dict(zip(widths, bounds, strict=True))
    accuracy = dict(zip(widths, accuracy, strict=True))
    picked, best = min(bounds, key=bounds.get), max(accuracy, key=accuracy.get)
    return bound._claims("x", widths, lambda b, _: [loss_of[b]], bounds, accuracy, picked, best)


def test_claims_of_the_bound_say_why_they_do_not_hold():
    assert all(claim.holds for claim in bound_claims([3, 2, 1], [3, 1, 2], [0.5, 0.8, 0.81]))
    loss, accuracy, turn = bound_claims([3, 1, 2], [3, 2, 1], [0.8, 0.7, 0.75])
    assert loss.numbers.endswith("; but +1 from b = 3 to b = 5")
    assert accuracy.numbers.endswith(
        "; but -10 from b = 2 to b = 3, the last step is at least a quarter of the first"
    )
    assert turn.numbers.endswith(
        "; but the bound still falls at b = 5, at least 2.5 points are lost"
    )
    for claim in bound_claims([3], [3], [0.8])[1:]:
        assert claim.numbers.endswith("; but there is only one width")
