"""``xtrellis serve`` as a real process: requests, reloads while they run, bad clients, the end."""

import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time

import pytest

from samples import reports
from service import Service
from xtrellis import TrellisClassifier, TrellisTextClassifier

pytestmark = pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="needs signals of Unix")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Two models that call the same things differently."""
    folder = tmp_path_factory.mktemp("server")
    texts, labels = reports(200)
    for name, mark in (("old", ""), ("new", "!")):
        clf = TrellisTextClassifier(TrellisClassifier(C=1.0, random_state=0))
        clf.fit(texts, [label + mark for label in labels]).save(folder / name)
    shutil.copy(folder / "old", folder / "model")
    return folder


@pytest.fixture(scope="module")
def service(folder):
    service = Service(folder / "model", "--port", 0, "--timeout", 2)
    yield service
    if service.process.poll() is None:
        service.stop(signal.SIGKILL)


def replace(folder, name):
    shutil.copy(folder / name, folder / "beside")
    os.replace(folder / "beside", folder / "model")


def test_answers(service):
    text, noun = reports(200)[0][0], reports(200)[1][0]
    status, found = service.ask("/predict", {"text": text})
    assert status == 200
    assert found["results"][0]["answer"] == noun
    assert service.ask("/health")[1]["model"] == "model"


def test_monitors_may_ask_for_the_head_alone(service):
    for path in ("/", "/health", "/metrics"):
        with service.connect() as connection:
            connection.sendall(
                f"HEAD {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n".encode()
            )
            answer = b"".join(iter(lambda: connection.recv(65_536), b""))
        assert answer.startswith(b"HTTP/1.1 200")
        assert answer.endswith(b"\r\n\r\n"), "no body"


@pytest.mark.parametrize("way", ["signal", "post"])
def test_a_reload_drops_no_request(service, folder, way):
    text, noun = reports(200)[0][0], reports(200)[1][0]
    answers, stop = [], threading.Event()

    def ask():
        while not stop.is_set():
            status, found = service.ask("/predict", {"text": text, "explain": True})
            answers.append((status, found["results"][0]["answer"]))

    def wait_for(answer):
        deadline = time.monotonic() + 30
        while answer not in answers[-1:] and time.monotonic() < deadline:
            time.sleep(0.01)
        assert answers[-1] == answer

    clients = [threading.Thread(target=ask) for _ in range(3)]
    for client in clients:
        client.start()
    try:
        for name, answer in (("new", f"{noun}!"), ("old", noun)):
            replace(folder, name)
            if way == "signal":
                service.process.send_signal(signal.SIGHUP)
            else:
                assert service.ask("/reload", method="POST")[0] == 200
            wait_for((200, answer))
    finally:
        stop.set()
        for client in clients:
            client.join()
    assert set(answers) == {(200, noun), (200, f"{noun}!")}


def test_a_broken_file_leaves_the_old_model(service, folder):
    before = service.ask("/health")
    (folder / "model").write_bytes(b"no model")
    try:
        service.process.send_signal(signal.SIGHUP)
        line = service.wait_for("the old model stays")
        assert line.startswith("error: the old model stays in use: ")
        status, reply = service.ask("/reload", method="POST")
        assert status == 500
        assert reply["detail"].startswith("the old model stays in use: ")
        assert service.ask("/health") == before
    finally:
        replace(folder, "old")


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"POST /predict HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999\r\n\r\n", b"413"),
        (b"POST /predict HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\n{", b"4"),
        (b"no HTTP at all\r\n\r\n", b"400"),
        (b"GET / HTTP/1.1\r\nHost: x\r\nX: " + b"a" * 40_000, b"400"),
        (b"POST /predict HTTP/1.1\r\nHost: x\r\nContent-Length: -5\r\n\r\n", b"400"),
    ],
)
def test_bad_requests(service, sent, status):
    with service.connect() as connection:
        connection.sendall(sent)
        assert connection.recv(100).startswith(b"HTTP/1.1 " + status)
    assert service.ask("/health")[0] == 200


def test_clients_that_leave(service):
    """In the middle of the head, of the body, and before the answer."""
    head = b"POST /predict HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
    for sent in (
        head,
        head + b"Content-Length: 500\r\n\r\n{",
        head + b'Content-Length: 13\r\n\r\n{"text": "a"}',
    ):
        for _ in range(5):
            with service.connect() as connection:
                connection.sendall(sent)
    assert service.ask("/health")[0] == 200
    deadline = time.monotonic() + 20
    while 'path="/predict",status="499"' not in service.text("/metrics"):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert 'status="500"' not in service.text("/metrics").replace('path="/reload",status="500"', "")


def test_slow_clients_are_given_up(service):
    """After two seconds here, without the rest of a head or a body."""
    with service.connect() as first, service.connect() as second, service.connect() as silent:
        first.sendall(b"POST /predict HTTP/1.1\r\n")
        second.sendall(b"POST /predict HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\n")
        assert second.recv(100).startswith(b"HTTP/1.1 408")
        assert first.recv(100) == b""
        assert silent.recv(100) == b""


@pytest.fixture
def slow_reader(service):
    """A connection of small buffers, over which an answer of some 600 kB was asked for."""
    body = json.dumps({"texts": ["burn of the hand"] * 1000, "top_k": 100}).encode()
    head = "POST /predict HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8_192)
        connection.settimeout(30)
        connection.connect(("127.0.0.1", service.port))
        connection.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        yield connection


def test_clients_that_do_not_read_are_dropped(service, slow_reader):
    assert slow_reader.recv(12) == b"HTTP/1.1 200"
    dropped = select.poll()
    dropped.register(slow_reader, select.POLLHUP)
    start = time.monotonic()
    assert dropped.poll(30_000), "the connection is still open"
    assert 1 < time.monotonic() - start < 20
    assert service.ask("/health")[0] == 200


def test_clients_that_read_slowly_get_their_answer(slow_reader):
    """Over more than the two seconds that they may pause."""
    found, start = b"", time.monotonic()
    while not found.endswith(b"}]}"):
        part = slow_reader.recv(15_000)
        assert part, "the connection was closed"
        found += part
        time.sleep(len(part) / 150_000)
    assert len(json.loads(found.partition(b"\r\n\r\n")[2])["results"]) == 1000
    assert time.monotonic() - start > 3


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_the_end(folder, number, code):
    service = Service(folder / "model", "--port", 0)
    assert service.ask("/health")[0] == 200
    assert service.stop(number) == code
    assert not [line for line in service.lines if "Traceback" in line or "rror" in line]


def test_a_port_that_is_taken(service, folder):
    done = subprocess.run(
        [
            *(sys.executable, "-m", "xtrellis", "serve", str(folder / "model")),
            *("--port", str(service.port)),
        ],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 1
    assert (
        done.stderr == f"error: 127.0.0.1:{service.port}: cannot listen: Address already in use\n"
    )
