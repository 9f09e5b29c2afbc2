"""``xtrellis serve`` when it cannot start; ``tests/serving`` starts it."""

import importlib.util

from terminal import refused


def test_no_model(tmp_path):
    assert (
        refused("serve", tmp_path / "none")
        == f"error: {tmp_path / 'none'}: No such file or directory\n"
    )
    (tmp_path / "other").write_text("no model")
    assert refused("serve", tmp_path / "other").startswith(f"error: {tmp_path / 'other'}")


def test_without_the_extra(tmp_path, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    reason = "error: serving needs FastAPI and uvicorn: pip install 'xtrellis[serve]'\n"
    assert refused("serve", tmp_path / "none") == reason
