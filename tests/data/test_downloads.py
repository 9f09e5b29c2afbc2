"""Downloads against a real server that may drop, ignore or refuse what it is asked for."""

import bz2
import errno
import hashlib
import io
import os
import re
import tarfile
import threading
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from xtrellis.data import downloads
from xtrellis.data.downloads import DownloadError, data_home, download, unpack

DATA = os.urandom(300_000)


class Server:
    """Files over HTTP, and what is to go wrong."""

    def __init__(self):
        self.files = {"/file": DATA}
        self.drops = []  # bytes after which the connections of the next requests end
        self.ranges = True
        self.tag = '"one"'
        self.status = None
        self.asked = []  # Range headers
        handler = partial(_Handler, self)
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()

    def close(self):
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _Handler(BaseHTTPRequestHandler):
    def __init__(self, plan, *arguments):
        self.plan = plan
        super().__init__(*arguments)

    def do_GET(self):
        wanted = self.headers.get("Range")
        self.plan.asked.append(wanted)
        data = self.plan.files.get(self.path)
        if data is None or self.plan.status:
            self.send_error(self.plan.status or 404)
            return
        start = 0
        same = self.headers.get("If-Range", self.plan.tag) == self.plan.tag
        if wanted and self.plan.ranges and same:
            start = int(re.fullmatch(r"bytes=(\d+)-", wanted)[1])
            if start >= len(data):
                self.send_error(416)
                return
            self.send_response(206)
            self.send_header("Content-Range", f"bytes {start}-{len(data) - 1}/{len(data)}")
        else:
            self.send_response(200)
        if self.plan.tag:
            self.send_header("ETag", self.plan.tag)
        self.send_header("Content-Length", str(len(data) - start))
        self.end_headers()
        drop = self.plan.drops.pop(0) if self.plan.drops else len(data)
        self.wfile.write(data[start : start + drop])

    def log_message(self, *arguments):
        pass


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setattr(downloads, "_PAUSE", 0)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    server = Server()
    yield server
    server.close()


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_a_whole_file(server, tmp_path):
    checksum = hashlib.sha256(DATA).hexdigest()
    target = tmp_path / "new" / "file"
    assert download(server.url + "/file", target, sha256=checksum.upper()) == target
    assert target.read_bytes() == DATA
    assert names(tmp_path / "new") == ["file"]
    download(server.url + "/file", target)  # is there already
    assert server.asked == [None]


def test_dropped_connections_are_resumed(server, tmp_path):
    server.drops = [100_000, 50_000]
    download(server.url + "/file", tmp_path / "file")
    assert (tmp_path / "file").read_bytes() == DATA
    assert server.asked == [None, "bytes=100000-", "bytes=150000-"]


def test_a_later_run_goes_on(server, tmp_path, monkeypatch):
    monkeypatch.setattr(downloads, "_TRIES", 1)
    server.drops = [100_000]
    # A try that got some bytes counts as the first of the next tries, here the last.
    with pytest.raises(DownloadError, match="the connection ended at byte 100000 of 300000"):
        download(server.url + "/file", tmp_path / "file")
    assert names(tmp_path) == ["file.part", "file.part.tag"]
    download(server.url + "/file", tmp_path / "file")
    assert (tmp_path / "file").read_bytes() == DATA
    assert names(tmp_path) == ["file"]
    assert server.asked == [None, "bytes=100000-"]


@pytest.mark.parametrize("tag", ['"one"', ""])
def test_a_server_without_ranges_begins_anew(server, tmp_path, tag):
    server.ranges, server.tag = False, tag
    server.drops = [100_000]
    download(server.url + "/file", tmp_path / "file")
    assert (tmp_path / "file").read_bytes() == DATA


def test_a_changed_file_begins_anew(server, tmp_path, monkeypatch):
    monkeypatch.setattr(downloads, "_TRIES", 1)
    server.drops = [100_000]
    with pytest.raises(DownloadError):
        download(server.url + "/file", tmp_path / "file")
    server.files["/file"], server.tag = DATA[::-1], '"two"'
    download(server.url + "/file", tmp_path / "file")
    assert (tmp_path / "file").read_bytes() == DATA[::-1]


def test_a_part_that_is_too_long_begins_anew(server, tmp_path):
    (tmp_path / "file.part").write_bytes(DATA * 2)
    download(server.url + "/file", tmp_path / "file")
    assert (tmp_path / "file").read_bytes() == DATA


def test_what_the_server_refuses(server, tmp_path):
    with pytest.raises(
        DownloadError, match=r"/nothing: the server answers 404 Not Found; the file may"
    ):
        download(server.url + "/nothing", tmp_path / "file")
    assert server.asked == [None]  # no use in trying again
    server.status = 503
    with pytest.raises(DownloadError, match="503"):
        download(server.url + "/file", tmp_path / "file")
    assert len(server.asked) == 1 + downloads._TRIES
    assert names(tmp_path) == []


def test_a_wrong_checksum(server, tmp_path):
    with pytest.raises(
        DownloadError, match=r"the checksum is [0-9a-f]+, not 00ff; the file was rem"
    ):
        download(server.url + "/file", tmp_path / "file", sha256="00ff")
    assert names(tmp_path) == []


def test_no_network(server, tmp_path):
    url = server.url
    server.close()
    with pytest.raises(
        DownloadError, match=r"cannot be downloaded \(.*\); check the network"
    ) as caught:
        download(url + "/file", tmp_path / "file")
    assert "\n" not in str(caught.value)


def test_other_addresses(tmp_path):
    for url in ("file:///etc/hosts", "ftp://localhost/x", "nonsense"):
        with pytest.raises(DownloadError, match="only http and https"):
            download(url, tmp_path / "file")


def test_disk_errors(server, tmp_path, monkeypatch):
    (tmp_path / "taken").write_text("")
    with pytest.raises(DownloadError, match="cannot be written"):
        download(server.url + "/file", tmp_path / "taken" / "file")

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(downloads, "_fetch_with_retries", full)
    with pytest.raises(DownloadError, match="the disk is full; free some space"):
        download(server.url + "/file", tmp_path / "file")


def test_a_bar_on_a_terminal(server, tmp_path, monkeypatch):
    terminal = io.StringIO()
    terminal.isatty = lambda: True
    monkeypatch.setattr("sys.stderr", terminal)
    download(server.url + "/file", tmp_path / "file.txt")
    assert "file.txt" in terminal.getvalue()


def test_home(monkeypatch, tmp_path):
    assert data_home(tmp_path) == tmp_path
    monkeypatch.setenv("XTRELLIS_DATA_HOME", str(tmp_path / "a"))
    assert data_home() == tmp_path / "a"
    monkeypatch.delenv("XTRELLIS_DATA_HOME")
    assert data_home().is_absolute()
    assert data_home().parts[-2:] == (".cache", "xtrellis")


# ---------------------------------------------------------------------- archives


def archive(path, members, mode="w:bz2"):
    with tarfile.open(path, mode) as tar:
        for name, content in members:
            info = tarfile.TarInfo(name)
            if content is None:
                info.type, info.linkname = tarfile.SYMTYPE, "/etc/hosts"
                tar.addfile(info)
            else:
                info.size = len(content)
                tar.addfile(info, io.BytesIO(content))
    return path


@pytest.mark.parametrize("mode", ["w", "w:gz", "w:bz2", "w:xz"])
def test_wanted_files_are_taken(tmp_path, mode):
    packed = archive(tmp_path / "x.tar", [("s/a", b"1"), ("b", b"2"), ("s/c", b"3")], mode)
    unpack(packed, tmp_path / "out", ["a", "b"])
    assert names(tmp_path / "out") == ["a", "b"]
    assert (tmp_path / "out" / "a").read_bytes() == b"1"


def test_archives_cannot_write_elsewhere(tmp_path):
    members = [("../a", b"1"), ("/b", b"2"), ("../../evil", b"3"), ("s/c", None), ("s/c", b"4")]
    unpack(archive(tmp_path / "x.tar", members), tmp_path / "in" / "out", ["a", "b", "c"])
    assert names(tmp_path) == ["in", "x.tar"]
    assert names(tmp_path / "in") == ["out"]
    assert names(tmp_path / "in" / "out") == ["a", "b", "c"]
    assert not (tmp_path / "in" / "out" / "c").is_symlink()


def test_archives_of_no_use(tmp_path):
    path = tmp_path / "x.tar.bz2"
    with pytest.raises(DownloadError, match="does not contain b; it was removed"):
        unpack(archive(path, [("a", b"1")]), tmp_path, ["a", "b"])
    assert not path.exists()
    for data in (
        b"<html>",
        bz2.compress(b"<html>" * 1000),
        b"",
        archive(path, [("a", DATA)], "w:gz").read_bytes()[:9999],
    ):
        path.write_bytes(data)
        with pytest.raises(DownloadError, match=r"damaged|does not contain"):
            unpack(path, tmp_path / "out", ["a"])
        assert not path.exists()
        assert "a" not in names(tmp_path / "out")
    whole = bytearray(archive(path, [("a", DATA)]).read_bytes())
    whole[len(whole) // 2] ^= 255
    path.write_bytes(whole)
    with pytest.raises(DownloadError, match="damaged"):
        unpack(path, tmp_path / "out", ["a"])
