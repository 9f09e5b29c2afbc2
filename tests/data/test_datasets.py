"""The bundled sets are what their page says; the paper's are read from a folder or a server."""

import hashlib
import io
import tarfile
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

from xtrellis import load_icd10cm, load_wordnet
from xtrellis.data import datasets, fetch_paper_set
from xtrellis.data.datasets import PAPER_SETS, PaperSet
from xtrellis.data.downloads import DownloadError
from xtrellis.data.streams import DataError

CHECKSUMS = {
    "icd10cm": (
        "779f5fd942a33164086bd862714e195f82de6c2425b979c88039c669ef0e0135",
        "b7bc1f35c25996f66a8f09f90fc38761ea4c27049e894b993e3842dbfa229008",
    ),
    "wordnet": (
        "f57cf84ebc1d184abc254af38df621a16b1217061495fb27d7fff715d229fa0c",
        "d9e8db134b8ac0da851a9de562bc2cd3d36cfdd5258e2ba656134e4fd6874873",
    ),
}


@pytest.mark.parametrize(
    ("name", "load", "n_train", "n_test", "n_classes"),
    [
        ("icd10cm", load_icd10cm, 47_041, 11_760, 1_597),
        ("wordnet", load_wordnet, 55_379, 13_817, 7_319),
    ],
)
def test_bundled_sets(name, load, n_train, n_test, n_classes):
    split = load()
    assert len(split.train_texts) == len(split.train_labels) == n_train
    assert len(split.test_texts) == len(split.test_labels) == n_test
    assert len(np.unique(split.train_labels)) == n_classes
    assert np.isin(split.test_labels, split.train_labels).all()
    halves = (split.train_texts, split.train_labels), (split.test_texts, split.test_labels)
    for (texts, labels), checksum in zip(halves, CHECKSUMS[name], strict=True):
        lines = "".join(f"{y}\t{text}\n" for text, y in zip(texts, labels, strict=True))
        assert hashlib.sha256(lines.encode()).hexdigest() == checksum


def test_the_licence_goes_with_wordnet():
    folder = datasets.resources.files("xtrellis.data") / "bundled"
    assert "WordNet 3.1 Copyright 2011" in (folder / "WORDNET_LICENSE.txt").read_text()


# ---------------------------------------------------------------------- the paper's


@pytest.fixture
def tiny(monkeypatch):
    """A set of the paper made tiny; its three files."""
    monkeypatch.setitem(PAPER_SETS, "sector", PaperSet(3, 4, 3, "http://127.0.0.1:9/sector"))
    return {
        "sector.train": b"1 1:1\n2 2:1\n3 1:1 4:1\n",
        "sector.heldout": b"3 2:0.5\n",
        "sector.test": b"2 4:1\n1 2:1\n",
    }


def check(split):
    assert split.X_train.toarray().tolist() == [[1, 0, 0, 0], [0, 1, 0, 0], [1, 0, 0, 1]]
    assert split.X_valid.toarray().tolist() == [[0, 0.5, 0, 0]]
    assert split.X_test.shape == (2, 4)
    assert [y.tolist() for y in split[1::2]] == [[1, 2, 3], [3], [2, 1]]


@pytest.mark.parametrize("layout", ["sector", "."])
@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_from_a_folder(tiny, tmp_path, layout, suffix):
    (tmp_path / layout).mkdir(exist_ok=True)
    for name, data in tiny.items():
        (tmp_path / layout / (name + suffix)).write_bytes(data)
    check(fetch_paper_set("sector", folder=tmp_path))


def test_features_from_zero_in_any_part(tiny, tmp_path):
    for name, data in tiny.items():
        (tmp_path / name).write_bytes(data.replace(b"4:", b"3:"))
    (tmp_path / "sector.test").write_bytes(b"2 0:1\n1 2:1\n")
    split = fetch_paper_set("sector", folder=tmp_path)
    assert split.X_train.toarray().tolist() == [[0, 1, 0, 0], [0, 0, 1, 0], [0, 1, 0, 1]]


def test_wrong_folders_and_files(tiny, tmp_path):
    with pytest.raises(DataError, match=r"there is no sector.train or sector/sector.train"):
        fetch_paper_set("sector", folder=tmp_path)
    for name, data in tiny.items():
        (tmp_path / name).write_bytes(data)
    (tmp_path / "sector.heldout").write_bytes(b"1 1:x\n")
    with pytest.raises(DataError, match=r"sector.heldout:1: the value in '1:x'"):
        fetch_paper_set("sector", folder=tmp_path)
    (tmp_path / "sector.heldout").write_bytes(b"A 1:1\n")
    with pytest.raises(DataError, match=r"sector.heldout: some labels are words, those of "):
        fetch_paper_set("sector", folder=tmp_path)


def test_other_sizes_than_the_papers_are_told(tiny, tmp_path):
    for name, data in tiny.items():
        (tmp_path / name).write_bytes(data + b"9 7:1\n")
    with pytest.warns(
        UserWarning, match=r"4 classes \(3\), 7 features \(4\), 4 training rows \(3\)"
    ):
        split = fetch_paper_set("sector", folder=tmp_path)
    assert {X.shape[1] for X in split[::2]} == {7}


def test_fetched_once(tiny, tmp_path, monkeypatch):
    home, served = tmp_path / "home", tmp_path / "served"
    served.mkdir()
    with tarfile.open(served / "sector.tar.bz2", "w:bz2") as tar:
        for name, data in tiny.items():
            info = tarfile.TarInfo("sector/" + name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setattr(SimpleHTTPRequestHandler, "log_message", lambda *_: None)
    handler = partial(SimpleHTTPRequestHandler, directory=str(served))
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        url = f"http://127.0.0.1:{server.server_port}/"
        check(fetch_paper_set("sector", data_home=home, base_url=url))
        with pytest.raises(DownloadError, match="404"):
            fetch_paper_set("Dmoz", data_home=home, base_url=url)
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
    assert sorted(path.name for path in (home / "sector").iterdir()) == sorted(tiny)
    monkeypatch.setenv("XTRELLIS_DATA_HOME", str(home))
    check(fetch_paper_set("sector"))  # no server any more


def test_unknown_names():
    with pytest.raises(
        ValueError, match=r"name must be one of sector, aloi.bin, imageNet, Dmoz, L"
    ):
        fetch_paper_set("iris")
