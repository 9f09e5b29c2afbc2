"""The demonstration on a part of the bundled data: everything it promises is there."""

import numpy as np

from xtrellis import load_icd10cm, load_model
from xtrellis.command import demo
from xtrellis.data.datasets import TextSplit


def test_demo_prints_and_leaves_everything(tmp_path, monkeypatch, capsys):
    data = load_icd10cm()
    few = np.unique(data.train_labels)[:60]
    train, test = np.isin(data.train_labels, few), np.isin(data.test_labels, few)
    part = TextSplit(
        [text for text, kept in zip(data.train_texts, train, strict=True) if kept],
        data.train_labels[train],
        [text for text, kept in zip(data.test_texts, test, strict=True) if kept],
        data.test_labels[test],
    )
    monkeypatch.setattr(demo, "load_icd10cm", lambda: part)
    demo.run(tmp_path / "out", n_jobs=1)
    shown = capsys.readouterr().out
    for name in ("LTLS", "W-LTLS as in the paper, b = 10", "local, C = 3, b = 40", "one-vs-rest"):
        assert f"\n{name}" in shown
    assert "<- by bound" in shown
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "accuracy_size.png",
        "accuracy_time.png",
        "icd10cm.xtrellis",
        "report.html",
        "trellis.png",
        "widths.png",
    ]
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert page.count("data:image/png;base64,") == 4
    assert "http" not in page
    model = load_model(tmp_path / "out" / "icd10cm.xtrellis")
    assert model.score(part.test_texts, part.test_labels) > 0.6
