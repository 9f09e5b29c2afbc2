"""The application: answers agree with the estimators, and bad requests get one line."""

import json
import shutil
import tracemalloc
import warnings

import numpy as np
import pytest
from pydantic import ValidationError
from scipy import sparse

from samples import topics
from test_text import reports
from xtrellis import TrellisClassifier, TrellisEnsemble, TrellisTextClassifier, load_model
from xtrellis.data.text_features import TextFeatures
from xtrellis.serving.app import make_app
from xtrellis.serving.requests import PredictAnswer, PredictRequest

with warnings.catch_warnings():  # Starlette asks for a successor of httpx
    warnings.simplefilter("ignore")
    from fastapi.testclient import TestClient

LOOPBACK = ("127.0.0.1", 50_000)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("serving")
    texts, labels = reports(200)
    clf = TrellisTextClassifier(TrellisClassifier(C=1.0, random_state=0))
    clf.fit(texts, labels).save(folder / "texts.xtrellis")
    X, y = topics(n_classes=12, n_features=60, n_rows=1200)
    TrellisClassifier(C=1.0, random_state=0).fit(X, y).save(folder / "rows.xtrellis")
    return folder


@pytest.fixture(scope="module")
def client(folder):
    with TestClient(make_app(folder / "texts.xtrellis"), client=LOOPBACK) as client:
        yield client


@pytest.fixture(scope="module")
def rows_client(folder):
    with TestClient(make_app(folder / "rows.xtrellis"), client=LOOPBACK) as client:
        yield client


def predict(client, status=200, **request):
    reply = client.post("/predict", json=request)
    assert reply.status_code == status, reply.text
    return reply.json() if status == 200 else reply.json()["detail"]


def sparse_rows(X):
    return [{"indices": row.indices.tolist(), "values": row.data.tolist()} for row in X]


# ---------------------------------------------------------------------- answers


def test_labels_and_probabilities_are_those_of_the_model(folder, client):
    clf, texts = load_model(folder / "texts.xtrellis"), reports(200)[0][:7]
    labels, probabilities = clf.predict_top_k(texts, 3)
    found = predict(client, texts=texts, top_k=3)
    assert found["model"] == "texts.xtrellis"
    for result, own, shares in zip(found["results"], labels, probabilities, strict=True):
        assert [each["label"] for each in result["labels"]] == own.tolist()
        assert [each["probability"] for each in result["labels"]] == pytest.approx(shares)
        assert result["answer"] == own[0]
        assert result["abstained"] is False
    one = predict(client, text=texts[0], top_k=3)
    assert one["results"] == found["results"][:1]


def test_known_terms_of_texts_are_counted(folder, client, rows_client):
    texts = [reports(200)[0][0], "nothing that it knows", ""]
    expected = load_model(folder / "texts.xtrellis").transform(texts).getnnz(axis=1).tolist()
    results = predict(client, texts=texts)["results"]
    assert [each["known_terms"] for each in results] == expected
    assert expected[0] > 0
    assert expected[1:] == [0, 0]
    (row,) = predict(rows_client, rows=sparse_rows(topics(12, 60, 1200)[0][:1]))["results"]
    assert row.get("known_terms") is None


def test_all_classes_if_fewer_than_asked_for(folder, client):
    n_classes = len(load_model(folder / "texts.xtrellis").classes_)
    assert len(predict(client, text="x", top_k=100)["results"][0]["labels"]) == n_classes


def test_no_texts_no_results(client):
    assert predict(client, texts=[])["results"] == []


def test_rows(folder, rows_client):
    clf, (X, _) = load_model(folder / "rows.xtrellis"), topics(12, 60, 1200)
    found = predict(rows_client, rows=sparse_rows(X[:9]), coverage=0.8)["results"]
    assert [each["answer"] for each in found] == clf.predict(X[:9]).tolist()
    sets, probabilities = clf.predict_set(X[:9], 0.8, return_proba=True)
    for each, own, likely in zip(found, sets, probabilities, strict=True):
        assert [member["label"] for member in each["set"]] == own.tolist()
        assert [member["probability"] for member in each["set"]] == likely.tolist()


def test_features_are_numbered_as_in_training(tmp_path):
    clf = TrellisClassifier(random_state=0).fit(np.eye(5), range(5))
    clf.first_feature_ = 1
    clf.save(tmp_path / "model")
    with TestClient(make_app(tmp_path / "model")) as client:
        assert client.get("/health").json()["first_feature"] == 1
        found = predict(client, rows=[{"indices": [4], "values": [1]}], explain=True)["results"][0]
        assert found["answer"] == 3
        assert found["explanation"]["in_favour"][0]["feature"] == 4
        reason = predict(client, 422, rows=[{"indices": [0], "values": [1]}])
        assert reason == "index 0 is out of range: the model has features 1 to 5"


def test_none_of_these(client):
    sure = predict(client, text="x", min_probability=1.0, otherwise="none")["results"][0]
    assert (sure["answer"], sure["abstained"]) == ("none", True)
    assert predict(client, text="x", min_probability=1.0)["results"][0]["answer"] is None
    assert not predict(client, text="x", min_probability=0.0)["results"][0]["abstained"]


def test_explanations(folder, client):
    clf, text = load_model(folder / "texts.xtrellis"), reports(200)[0][0]
    found = predict(client, text=text, explain=True)["results"][0]["explanation"]
    own = clf.explain(text)
    assert found["label"] == own.label
    amounts = [(each["feature"], each["amount"]) for each in found["in_favour"]]
    assert amounts == [(each.feature, each.amount) for each in own.in_favour[:10]]
    (drawing,) = found["trellises"]
    trellis = clf.classifier_.trellis_
    assert drawing["slices"] == list(trellis.slice_sizes)
    assert drawing["path"] == [step.head for step in own.steps if step.head is not None]


def test_texts_become_rows_once(client, monkeypatch):
    calls, transform = [], TextFeatures.transform
    monkeypatch.setattr(
        TextFeatures, "transform", lambda self, texts: calls.append(1) or transform(self, texts)
    )
    texts = reports(200)[0][:3]
    found = predict(client, texts=texts, explain=True, min_probability=0.5)["results"]
    assert all(each["explanation"]["trellises"] for each in found)
    assert len(calls) == 1


def test_a_drawing_for_every_trellis(tmp_path):
    X, y = topics(12, 60, 120)
    TrellisEnsemble(TrellisClassifier(C=1.0), n_estimators=2, random_state=0).fit(X, y).save(
        tmp_path / "model"
    )
    with TestClient(make_app(tmp_path / "model")) as client:
        found = predict(client, rows=sparse_rows(X[:1]), explain=True)["results"][0]
    assert len(found["explanation"]["trellises"]) == 2


# ---------------------------------------------------------------------- bad requests


@pytest.mark.parametrize(
    ("request_", "reason"),
    [
        ({}, "pass one of text, texts and rows; got none"),
        ({"text": "a", "texts": ["b"]}, "pass one of text, texts and rows; got text and texts"),
        ({"texts": "a"}, "texts must be a list"),
        ({"texts": ["a", 1]}, "texts.1 must be a string"),
        ({"text": "a", "top_k": 0}, "top_k must be greater than or equal to 1"),
        ({"text": "a", "top_k": 1.5}, "top_k must be an integer"),
        ({"text": "a", "coverage": 1}, "coverage must be less than 1"),
        ({"text": "a", "min_probability": 2}, "min_probability must be less than or equal to 1"),
        ({"text": "a", "otherwise": "none"}, "otherwise needs min_probability"),
        ({"text": "a", "topk": 3}, "topk is not a field of requests"),
        ({"texts": ["a"] * 1001}, "texts must have at most 1000 items"),
        ({"texts": ["a"] * 21, "explain": True}, "at most 20 texts or rows"),
        ({"rows": [{"indices": [], "values": []}]}, "the model takes texts: pass 'texts'"),
        ([1, 2], 'the body must be a JSON object such as {"text": "..."}'),
    ],
)
def test_requests_that_do_not_fit(client, request_, reason):
    reply = client.post("/predict", json=request_)
    assert reply.status_code == 422, reply.text
    assert reply.json()["detail"].startswith(reason)


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({"indices": [1, 2], "values": [1]}, "rows.0: 2 indices, but 1 values"),
        ({"indices": [1, 1], "values": [1, 2]}, "rows.0: an index occurs twice"),
        ({"indices": [-1], "values": [1]}, "rows.0.indices.0 must be "),
        ({"indices": [60], "values": [1]}, "index 60 is out of range: the model has features 0 to"),
        ({"indices": [10**30], "values": [1]}, "index 1"),
        ({"indices": [1], "values": ["a"]}, "rows.0.values.0 must be a number"),
        ({"indices": [1], "values": [-1e39]}, "a value is too large"),
        ({"indices": [1]}, "rows.0.values is missing"),
    ],
)
def test_rows_that_do_not_fit(rows_client, row, reason):
    assert predict(rows_client, 422, rows=[row]).startswith(reason)


def test_sets_of_many_inputs_are_bounded(rows_client, monkeypatch):
    """A set may have every class of the model: many classes times many rows fill the memory."""
    classes = rows_client.get("/health").json()["classes"]
    monkeypatch.setattr("xtrellis.serving.answers.MOST_IN_SETS", 3 * classes, raising=False)
    row = {"indices": [1], "values": [1.0]}
    assert len(predict(rows_client, rows=[row] * 3, coverage=0.7)["results"]) == 3
    detail = predict(rows_client, 422, rows=[row] * 4, coverage=0.7)
    assert "at most 3 texts or rows can have sets at once" in detail


def test_one_of_many_errors_is_enough():
    """A body of some megabytes could have a million of them."""
    rows = [{"indices": ["a"] * 100, "values": [1] * 100}] * 10
    for request in ({"rows": rows}, {"texts": [1] * 100}):
        with pytest.raises(ValidationError) as refused:
            PredictRequest(**request)
        assert refused.value.error_count() == 1


@pytest.mark.parametrize("number", ["NaN", "Infinity", "1e999"])
def test_numbers_that_are_none(rows_client, number):
    body = f'{{"rows": [{{"indices": [1], "values": [{number}]}}]}}'
    reply = rows_client.post("/predict", content=body, headers={"content-type": "application/json"})
    assert reply.status_code == 422


@pytest.mark.parametrize("body", ["{", "", '{"text": "a"', "\x00", "[" * 100_000])
def test_bodies_that_are_not_json(client, body):
    reply = client.post("/predict", content=body, headers={"content-type": "application/json"})
    assert reply.status_code in (400, 422), reply.text
    assert "\n" not in reply.json()["detail"]


def test_where_a_body_stops_being_json(client):
    headers = {"content-type": "application/json"}
    for body, reason in (
        ('{"text": "a', "Unterminated string starting at character 9"),
        ('{"text" "a"}', "Expecting ':' delimiter at character 8"),
    ):
        reply = client.post("/predict", content=body, headers=headers)
        assert reply.json()["detail"] == f"the body is not JSON: {reason}"


@pytest.mark.parametrize(
    "body", [b"[" * 50_000, b'{"text": "\xff"}', b'{"text": "a", "top_k": ' + b"9" * 5000 + b"}"]
)
def test_bodies_that_cannot_be_decoded(client, body):
    reply = client.post("/predict", content=body, headers={"content-type": "application/json"})
    assert reply.status_code == 400
    assert reply.json()["detail"].startswith("the body is not JSON in UTF-8, or too deep, or has")


@pytest.mark.parametrize("kind", ["application/x-www-form-urlencoded", "text/plain"])
def test_a_body_that_does_not_say_that_it_is_json(client, kind):
    """As curl -d sends it."""
    body = b'{"text": "an apple"}'
    reply = client.post("/predict", content=body, headers={"content-type": kind})
    assert reply.status_code == 422
    assert reply.json()["detail"] == 'the header "Content-Type: application/json" is missing'
    reply = client.post("/predict")
    assert reply.json()["detail"] == 'the body is empty: send JSON such as {"text": "..."}'


def test_features_with_huge_numbers_take_no_memory(tmp_path):
    """Neither to warm up nor to answer: all columns would take 8 GB."""
    X = sparse.csr_matrix(([1.0, 1.0], ([0, 1], [7, 2**31 - 2])), (2, 2**31 - 1))
    TrellisClassifier(random_state=0).fit(X, ["a", "b"]).save(tmp_path / "model")
    tracemalloc.start()
    with TestClient(make_app(tmp_path / "model"), client=LOOPBACK) as client:
        found = predict(client, rows=[{"indices": [2**31 - 2], "values": [1.0]}])
    assert found["results"][0]["answer"] == "b"
    assert tracemalloc.get_traced_memory()[1] < 1e8
    tracemalloc.stop()


def test_texts_of_all_kinds(client):
    texts = ["", " ", "\x00", "é" * 1000, "😀", "\ud800", "<script>alert(1)</script>"]
    body = json.dumps({"texts": texts})
    reply = client.post("/predict", content=body, headers={"content-type": "application/json"})
    assert reply.status_code in (200, 400, 422)
    assert len(predict(client, texts=[*texts[:5], texts[6]], explain=True)["results"]) == 6


def test_bodies_that_are_too_large(folder):
    with TestClient(make_app(folder / "texts.xtrellis", max_body=1000)) as client:
        assert predict(client, text="a" * 900)
        reply = client.post("/predict", json={"text": "a" * 1000})
        assert reply.status_code == 413
        assert reply.json()["detail"] == "the body is larger than 1,000 bytes"
        chunks = (b"a" * 100 for _ in range(20))  # of a length that is not announced
        assert client.post("/predict", content=chunks).status_code == 413


def test_methods_and_paths_that_do_not_exist(client):
    reply = client.get("/predict")
    assert (reply.status_code, reply.headers["allow"]) == (405, "POST")
    assert client.get("/nothing").status_code == 404


# ---------------------------------------------------------------------- the rest


def test_health(client):
    found = client.get("/health").json()
    assert (found["status"], found["model"], found["takes"]) == ("ok", "texts.xtrellis", "texts")
    assert found["classes"] > 2


def test_metrics_count(folder):
    with TestClient(make_app(folder / "texts.xtrellis")) as client:
        predict(client, texts=["a", "b"])
        predict(client, 422)
        client.get("/made/up")
        text = client.get("/metrics").text
    assert 'xtrellis_requests_total{path="/predict",status="200"} 1\n' in text
    assert 'xtrellis_requests_total{path="/predict",status="422"} 1\n' in text
    assert 'xtrellis_requests_total{path="other",status="404"} 1\n' in text
    assert "xtrellis_inputs_total 2\n" in text
    assert "xtrellis_predict_seconds_count 1\n" in text
    assert 'xtrellis_predict_seconds_bucket{le="+Inf"} 1\n' in text


def test_the_pages_load_nothing_from_elsewhere(client):
    for path in ("/", "/docs"):
        reply = client.get(path)
        assert reply.status_code == 200
        assert "default-src 'none'" in reply.headers["content-security-policy"]
        rest = reply.text.replace("http://www.w3.org/2000/svg", "")
        assert "http:" not in rest
        assert "https:" not in rest
    assert "/predict" in client.get("/openapi.json").json()["paths"]


def test_answers_are_as_described(client):
    found = predict(client, texts=["a", "fever"], coverage=None, explain=True)
    assert PredictAnswer.model_validate(found).results[1].explanation
    described = client.get("/openapi.json").json()["paths"]["/predict"]["post"]["responses"]
    assert set(described) == {"200", "400", "408", "413", "422"}


# ---------------------------------------------------------------------- a new model


def test_a_new_model_is_taken_over_and_a_broken_one_is_not(folder, tmp_path):
    path = tmp_path / "model"
    shutil.copy(folder / "texts.xtrellis", path)
    with TestClient(make_app(path), client=LOOPBACK) as client:
        before = client.get("/health").json()
        shutil.copy(folder / "rows.xtrellis", path)
        assert client.get("/health").json() == before
        assert client.post("/reload").json()["takes"] == "rows"
        after = client.get("/health").json()
        assert after["takes"] == "rows"
        path.write_bytes(path.read_bytes()[:-100])
        reply = client.post("/reload")
        assert reply.status_code == 500
        assert reply.json()["detail"].startswith("the old model stays in use: ")
        path.unlink()
        assert client.post("/reload").status_code == 500
        assert client.get("/health").json() == after
        text = client.get("/metrics").text
    assert "xtrellis_reloads_total 1\n" in text
    assert "xtrellis_failed_reloads_total 2\n" in text


@pytest.mark.parametrize("address", ["192.168.1.5", "2001:db8::1", "testclient"])
def test_others_may_not_reload(folder, address):
    app = make_app(folder / "texts.xtrellis")
    with TestClient(app, client=(address, 1)) as client:
        assert client.post("/reload").status_code == 403


@pytest.mark.parametrize("header", ["X-Forwarded-For", "Forwarded", "Origin"])
def test_nor_those_behind_a_proxy_or_a_web_page(client, header):
    assert client.post("/reload", headers={header: "x"}).status_code == 403
    assert client.post("/reload").status_code == 200
