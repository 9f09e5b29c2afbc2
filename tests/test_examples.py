"""The scripts in examples/ run as a reader would run them, and print what they promise."""

import re
import runpy
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[1] / "examples"
# For each script the least accuracies, in per cent, of the lines that it prints.
LEAST = {
    "own_learner": [85, 90],
    "own_loss": [84, 84, 84],
    "embeddings": [45, 52],
    "text_to_shipped_model": [87, 86],
    "train_on_dask": [90, 75],
}


def run(name, capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", [f"{name}.py"])
    runpy.run_path(str(FOLDER / f"{name}.py"), run_name="__main__")
    return capsys.readouterr().out


def test_every_example_is_run():
    assert {path.stem for path in FOLDER.glob("*.py")} == set(LEAST)


@pytest.mark.parametrize("name", LEAST)
def test_example_runs(name, capsys, monkeypatch):
    if name == "train_on_dask":
        pytest.importorskip("distributed")
    printed = run(name, capsys, monkeypatch)
    accuracies = re.findall(r"(?:accuracy|trained:|pruned:) ([\d.]+)%", printed)
    assert len(accuracies) == len(LEAST[name])
    for accuracy, least in zip(map(float, accuracies), LEAST[name], strict=True):
        assert least < accuracy <= 100
    if name == "embeddings":
        assert float(accuracies[1]) > float(accuracies[0]) + 1, "scaling helps"
    if name == "text_to_shipped_model":
        before, after = (float(size) for size in re.findall(r"([\d.]+) MB", printed))
        assert after < 0.8 * before
        assert "chronic sinus infection: J32" in printed
    if name == "train_on_dask":
        assert "the same weights as on one machine: yes" in printed
