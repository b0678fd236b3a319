"""The local server follows TensorFlow Serving's rules, each read in the server's source."""

import json
import shutil
import struct
import threading
import urllib.error
import urllib.request
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from keras_transformer.serving.local.batching import Batching, Queue
from keras_transformer.serving.local.json_rules import RefusalError, write_decimal
from keras_transformer.serving.local.warm_up_requests import FILE, masked_checksum
from keras_transformer.serving.runtime import field
from keras_transformer.serving.versions import restore, roll_back
from tests.serving.local_servers import serving


@pytest.fixture(scope="module")
def server(toy):
    with serving(toy) as server:
        yield server


def ask(server, path, body=None, method=None):
    """Returns the status, the headers and the bytes of an answer."""
    data = json.dumps(body).encode() if body is not None and not isinstance(body, bytes) else body
    request = urllib.request.Request(server.url + path, data, method=method)
    try:
        with urllib.request.urlopen(request, timeout=3600) as answer:
            return answer.status, answer.headers, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.headers, error.read()


def predict(server, body, path="/v1/models/toy:predict"):
    status, _, data = ask(server, path, body)
    return status, json.loads(data)


ECHO = {"text": "a", "number": 0.2, "integer": 1, "long": 2, "flag": False}
ECHO_COLUMNS = {name: [value] for name, value in ECHO.items()}


def test_row_form(server):
    status, answer = predict(server, {"instances": [{"text": "a"}, {"text": "b"}]})
    assert status == 200
    assert answer == {
        "predictions": [
            {"score": -0.1, "translation": "A", "truncated": False},
            {"score": -0.1, "translation": "B", "truncated": False},
        ]
    }


def test_an_only_input_or_output_needs_no_name(server):
    assert predict(server, {"instances": ["a", "b"], "signature_name": "one"})[1] == {"predictions": ["a", "b"]}
    assert predict(server, {"inputs": ["a", "b"], "signature_name": "one"})[1] == {"outputs": ["a", "b"]}


def test_column_form(server):
    assert predict(server, {"inputs": {"text": ["a", "bc"]}})[1] == {
        "outputs": {"score": [-0.1, -0.2], "translation": ["A", "BC"], "truncated": [False, False]}
    }


def test_every_input_is_needed(server):
    body = {"signature_name": "translate_with_options", "inputs": {"text": ["a"], "beam_size": [1], "max_length": [1]}}
    assert predict(server, body) == (400, {"error": "Missing named input: length_penalty in 'inputs' object."})


def test_row_form_needs_a_batch_in_every_output(server):
    body = {"signature_name": "total", "instances": ["a", "b"]}
    assert predict(server, body) == (400, {"error": "Tensor name: count has no shape information "})
    assert predict(server, {"signature_name": "total", "inputs": ["a", "b"]})[1]["outputs"]["count"] == 2


def test_bytes(server):
    body = {"signature_name": "echo", "instances": [{**ECHO, "text": {"b64": "/wBh"}}]}
    status, _, data = ask(server, "/v1/models/toy:predict", body)
    assert status == 200
    assert b'"text": "\xff\\u0000a"' in data  # As it is, whether or not it is UTF-8.
    assert b'"text_bytes": {"b64": "/wBh"}' in data
    body = b'{"signature_name": "one", "instances": ["\xff"]}'
    assert b'"\xff"' in ask(server, "/v1/models/toy:predict", body)[2]


def test_what_is_not_a_number_is_written_bare(server):
    body = b'{"signature_name": "echo", "inputs": %s}' % json.dumps({**ECHO_COLUMNS, "number": [np.nan]}).encode()
    assert b'"number": [NaN]' in ask(server, "/v1/models/toy:predict", body)[2]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.2, "0.2"),
        (3, "3.0"),
        (1 / 3, "0.333333343"),
        (9e6, "9e+06"),
        (-np.inf, "-Infinity"),
        (1e-9, "1e-09"),
        (16777217, "16777216.0"),
    ],
)
def test_decimals_have_as_many_digits_as_they_need(value, text):
    assert write_decimal(np.float32(value)) == text
    assert np.float32(text) == np.float32(value)


@pytest.mark.proof("`serving.serve` says what is wrong with a request as TensorFlow Serving does")
@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "JSON Parse error: The document is empty"),
        (b"{", "JSON Parse error"),
        (b'{"instances": ["\\ud800"], "signature_name": "one"}', "surrogate pair"),
        ([], "Is not object"),
        ({}, "Missing 'inputs' or 'instances' key"),
        ({"instances": ["a"], "inputs": ["a"]}, "expecting only one of"),
        ({"instances": "a"}, "to be an list/array"),
        ({"instances": []}, "No values in 'instances' array"),
        ({"instances": ["a"], "signature_name": 1}, "must be a string value"),
        ({"instances": ["a"], "signature_name": "x"}, 'Serving signature name: "x" not found in signature def'),
        ({"instances": ["a"], "signature_name": "score"}, "instances is a plain list, but expecting list of objects"),
        ({"instances": [{"txt": "a"}]}, "does not have named input: txt"),
        ({"instances": [{"source": "a"}], "signature_name": "score"}, "must only have keys: source,target"),
        ({"instances": [{"text": "a"}, "b"]}, "Expecting object but got list at item 1"),
        ({"instances": ["a", ["b"]]}, "Expecting tensor size: 1 but got"),
        ({"inputs": [["a"], ["b", "c"]]}, "Encountered list at unexpected size: 2 at level: 1 expected size: 1"),
        ({"inputs": [1]}, "is not of expected type: string"),
        ({"instances": [{"b64": "?"}]}, "Unable to base64 decode"),
        ({"instances": [{"b64": "ü"}]}, "Unable to base64 decode"),
        (
            {"inputs": {**ECHO_COLUMNS, "integer": [1.0]}, "signature_name": "echo"},
            "1.0 Type: Number is not of",
        ),
        ({"inputs": {**ECHO_COLUMNS, "integer": [2**31]}, "signature_name": "echo"}, "is not of expected type: int32"),
        ({"inputs": {**ECHO_COLUMNS, "number": [2**24 + 1]}, "signature_name": "echo"}, "without loss of precision"),
        ({"inputs": {**ECHO_COLUMNS, "flag": [1]}, "signature_name": "echo"}, "is not of expected type: bool"),
    ],
)
def test_what_is_wrong_with_a_request_is_said(server, body, message):
    status, answer = predict(server, body)
    assert status == 400
    assert message in answer["error"]


@pytest.mark.proof("`serving.serve` answers a damaged request with a result or with what is wrong, never with HTTP 500")
def test_damaged_requests(server, size, seen):
    random, statuses = np.random.default_rng(3), Counter()
    whole = [
        {"signature_name": "echo", "inputs": ECHO_COLUMNS},
        {"signature_name": "echo", "instances": [ECHO, {**ECHO, "text": {"b64": "/wBh"}}]},
        {"instances": ["a", "b"]},
    ]
    pieces = b'[ ] { } " , : null - 1e999 NaN \\ud800 \xff 0 [[]] "b64"'.split()
    for number in range(size(150, full=20_000)):
        body = bytearray(json.dumps(whole[number % len(whole)]).encode())
        for _ in range(random.integers(1, 4)):
            start = random.integers(len(body) + 1)
            end = start + random.integers(4)
            body[start:end] = pieces[random.integers(len(pieces))]
        status, _, data = ask(server, "/v1/models/toy:predict", bytes(body))
        assert status == 200 or (status == 400 and set(json.loads(data)) == {"error"}), (bytes(body), data)
        statuses[status] += 1
    assert len(statuses) == 2
    seen(", ".join(f"{count:,} answered with {status}" for status, count in sorted(statuses.items())))


def test_errors_of_the_graph(server):
    status, answer = predict(server, {"signature_name": "fails", "instances": ["fail"]})
    assert status == 400
    assert "was told to fail" in answer["error"]


def test_slow_answers_are_given_up(toy):
    with serving(toy, timeout=0.05) as server:
        status, answer = predict(server, {"signature_name": "waits", "instances": ["wait"]})
        assert status == 504
        assert set(answer) == {"error"}


@pytest.mark.parametrize(
    ("path", "status", "message"),
    [
        ("/v1/models/other:predict", 404, "Servable not found for request: Latest(other)"),
        ("/v1/models/toy/versions/7:predict", 404, "Servable not found for request: Specific(toy, 7)"),
        ("/v1/models/toy/labels/new:predict", 400, "Unrecognized servable version label: new"),
        ("/v1/models/toy/labels/gone:predict", 404, "Specific(toy, 9)"),
        ("/v1/models/toy:destroy", 400, "Malformed request: POST /v1/models/toy:destroy"),
    ],
)
def test_models_and_versions_that_are_not_there(server, path, status, message):
    found, answer = predict(server, {"instances": ["a"]}, path)
    assert found == status
    assert message in answer["error"]


def test_versions_and_labels(server):
    for path in ("/v1/models/toy/versions/1:predict", "/v1/models/toy/labels/stable:predict"):
        assert predict(server, {"instances": ["a"]}, path)[1]["predictions"][0]["translation"] == "A"


def test_status_and_metadata(server):
    one = {"version": "1", "state": "AVAILABLE", "status": {"error_code": "OK", "error_message": ""}}
    assert json.loads(ask(server, "/v1/models/toy")[2]) == {"model_version_status": [one]}
    for path, missing in (("toy/versions/7", "version 7 of model toy"), ("other/versions/7", "version 7 of model other")):
        assert predict(server, None, f"/v1/models/{path}") == (404, {"error": f"Could not find {missing}"})
    assert predict(server, None, "/v1/models/other") == (404, {"error": "Could not find any versions of model other"})
    found = json.loads(ask(server, "/v1/models/toy/versions/1/metadata")[2])
    score = found["metadata"]["signature_def"]["signature_def"]["score"]
    assert score["inputs"]["source"]["dtype"] == "DT_STRING"
    assert score["outputs"]["log_probability"]["tensor_shape"]["dim"] == [{"size": "-1", "name": ""}]
    assert found["model_spec"]["version"] == "1"


def test_cross_origin_requests_are_refused_unless_allowed(server, toy):
    assert "Access-Control-Allow-Origin" not in ask(server, "/v1/models/toy")[1]
    assert ask(server, "/v1/models/toy:predict", method="OPTIONS")[0] == 400
    with serving(toy, cors=True) as open_server:
        assert ask(open_server, "/v1/models/toy")[1]["Access-Control-Allow-Origin"] == "*"
        assert ask(open_server, "/v1/models/other")[1]["Access-Control-Allow-Origin"] == "*"
        assert ask(open_server, "/v1/models/toy:predict", method="OPTIONS")[0] == 200


def states(server):
    return {version: state for version, (state, _) in server.models["toy"].states.items()}


def test_the_newest_version_is_loaded_and_then_the_one_before_let_go(versions):
    folder = versions(2)
    (folder / "not-a-number").mkdir()
    with serving(folder) as server:
        assert states(server) == {2: "AVAILABLE"}
        versions(10)
        versions(1)
        server.poll()
        assert states(server) == {2: "END", 10: "AVAILABLE"}
        roll_back(folder)
        server.poll()
        assert states(server) == {2: "AVAILABLE", 10: "END"}
        restore(folder, 10)
        server.poll()
        assert states(server) == {2: "END", 10: "AVAILABLE"}
        shutil.rmtree(folder)
        server.poll()
        assert states(server) == {2: "END", 10: "END"}
        assert predict(server, {"instances": ["a"]})[0] == 404


def test_a_broken_version_leaves_the_one_before(versions):
    folder = versions(1)
    with serving(folder) as server:
        (folder / "2").mkdir()
        server.poll()
        assert states(server) == {1: "AVAILABLE", 2: "END"}
        assert "saved_model.pb" in server.models["toy"].states[2][1]
        versions_status = json.loads(ask(server, "/v1/models/toy")[2])["model_version_status"]
        assert [one["version"] for one in versions_status] == ["2", "1"]
        assert predict(server, {"instances": ["a"]})[0] == 200


def warm_up_record(signature, text):
    """Writes a TFRecord of a PredictionLog with a request for one text."""
    tensor = field(1, 7) + field(2, field(2, field(1, 1))) + field(8, text)
    inputs = field(2, field(1, b"text") + field(2, tensor))
    log = field(6, field(1, field(1, field(1, b"toy") + field(3, signature)) + inputs))
    size = struct.pack("<Q", len(log))
    return size + struct.pack("<I", masked_checksum(size)) + log + struct.pack("<I", masked_checksum(log))


def test_warm_up_requests_decide_whether_a_version_loads(versions):
    folder = versions(1)
    for version, texts in ((2, (b"good", b"better")), (3, (b"good", b"fail"))):
        (versions(version) / f"{version}/assets.extra").mkdir()
        records = b"".join(warm_up_record(b"fails", text) for text in texts)
        (folder / f"{version}/{FILE}").write_bytes(records)
    damaged = versions(4) / "4/assets.extra"
    damaged.mkdir()
    (folder / f"4/{FILE}").write_bytes(warm_up_record(b"fails", b"good").replace(b"good", b"goad"))
    with serving(folder / "nothing") as server:
        model = server.models["toy"]
        model.folder = folder
        for version in (1, 2, 3, 4):
            model.load(version)
        assert states(server) == {1: "AVAILABLE", 2: "AVAILABLE", 3: "END", 4: "END"}
        assert model.warm_ups == {1: 0, 2: 2}
        assert "was told to fail" in model.states[3][1]
        assert "corrupted record" in model.states[4][1]


def test_the_checksum_is_crc_32c():
    assert masked_checksum(b"123456789") == ((0xE3069283 >> 15 | 0xE3069283 << 17) + 0xA282EAD8) & 0xFFFFFFFF


def test_no_request_fails_while_versions_change(versions):
    folder = versions(1)
    with serving(folder, Batching(8, 0.0)) as server, ThreadPoolExecutor(4) as pool:
        answers = [pool.submit(predict, server, {"instances": [f"text {number}"]}) for number in range(100)]
        for version in (2, 3):
            versions(version)
            server.poll()
        answers += [pool.submit(predict, server, {"instances": ["end"]}) for _ in range(4)]
        assert [answer.result()[0] for answer in answers] == [200] * 104
        assert states(server) == {1: "END", 2: "END", 3: "AVAILABLE"}


def test_requests_are_batched_and_padded(toy):
    with serving(toy, Batching(6, 3600.0, allowed_batch_sizes=(4, 6))) as server, ThreadPoolExecutor(3) as pool:
        bodies = [{"instances": [f"{name}{number}" for number in range(2)]} for name in "abc"]
        answers = list(pool.map(lambda body: predict(server, body)[1]["predictions"], bodies))
        assert [[row["translation"] for row in answer] for answer in answers] == [["A0", "A1"], ["B0", "B1"], ["C0", "C1"]]
        assert server.models["toy"].batches == {(6, 6): 1}
    with serving(toy, Batching(6, 0.0, allowed_batch_sizes=(4, 6))) as server:
        assert len(predict(server, {"instances": ["a", "b", "c"]})[1]["predictions"]) == 3
        assert server.models["toy"].batches == {(3, 4): 1}


def test_one_request_of_a_batch_fails_the_others(toy):
    with serving(toy, Batching(2, 3600.0)) as server, ThreadPoolExecutor(2) as pool:
        bodies = [{"signature_name": "fails", "instances": [text]} for text in ("good", "fail")]
        assert [status for status, _ in pool.map(lambda body: predict(server, body), bodies)] == [400, 400]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"inputs": "a"}, "must have at least one dimension"),
        ({"inputs": {"source": ["a"], "target": ["b", "c"]}, "signature_name": "score"}, "must have equal 0th-dimension size"),
        ({"instances": ["a"] * 9}, "Task size 9 is larger than maximum input batch size 8"),
        ({"inputs": ["a"], "signature_name": "total"}, "Batched output tensor has 0 dimensions"),
    ],
)
def test_what_can_not_be_batched_is_refused(toy, body, message):
    with serving(toy, Batching(8)) as server:
        status, answer = predict(server, body)
        assert (status, message in answer["error"]) == (400, True)


def test_a_full_queue_refuses():
    started, go_on = threading.Event(), threading.Event()

    def run(inputs, timeout):
        started.set()
        go_on.wait()
        return {"out": inputs["in"]}

    def submit(*values):
        return pool.submit(queue.ask, {"in": np.array(values)}, 3600)

    queue = Queue(run, Batching(max_batch_size=2, batch_timeout=3600.0, max_enqueued_batches=1), seen=Counter())
    with ThreadPoolExecutor(3) as pool:
        running = submit(1, 2)
        started.wait()
        waiting = submit(3)
        while not queue.batches[-1].tasks:
            assert not waiting.done()
        with pytest.raises(RefusalError, match="queue to which this task was submitted is full") as error:
            queue.ask({"in": np.array([4, 5])}, 3600)
        last = submit(6)  # There is room for one row.
        go_on.set()
        assert [future.result()["out"].tolist() for future in (running, waiting, last)] == [[1, 2], [3], [6]]
    assert error.value.code == 14
    assert queue.seen == {(2, 2): 2}
    queue.close()


def test_requests_that_waited_too_long_are_refused():
    queue = Queue(lambda inputs, timeout: inputs, Batching(1), seen=Counter())
    with pytest.raises(RefusalError, match="timeout exceeded while waiting in batching queue") as error:
        queue.ask({"in": np.array([1])}, timeout=0.0)
    assert error.value.code == 8
    queue.close()


@pytest.mark.parametrize("sizes", [(4, 2, 8), (2, 4), (2, 2, 8)])
def test_allowed_sizes_must_increase_to_the_largest(sizes):
    with pytest.raises(ValueError, match="must increase and end in max_batch_size"):
        Batching(8, allowed_batch_sizes=sizes)
