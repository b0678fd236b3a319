"""An export served on this machine by one command."""

import http.client
import json
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest

from keras_transformer.serving import Client, write_playground
from keras_transformer.serving.local.batching import Batching, read_batching
from keras_transformer.serving.local.server import MOST_BYTES, Handler
from keras_transformer.serving.serve import main, make_server, welcome
from keras_transformer.serving.server_files import BATCHING

SENTENCE = 'It\'s a "small" house.'


@pytest.fixture
def export(versions):
    """The folder of a model with what an export writes beside its versions."""
    folder = versions(1)
    write_playground(folder / "playground.html", "en-de", limits={"beam_size": 3}, examples=[SENTENCE])
    sizes = "\n".join(f"allowed_batch_sizes: {size}" for size in (1, 2, 4, 8, 16, 32))
    text = BATCHING.substitute(largest=32, allowed=sizes, threads=2)
    (folder / "batching_parameters.txt").write_text(text)
    return folder


@pytest.fixture(scope="module")
def server(toy):
    with make_server(toy, "127.0.0.1", 0) as server:
        yield server


@contextmanager
def running(folder):
    """Runs the command and gives the process and what it printed until it served."""
    command = [sys.executable, "-m", "keras_transformer.serving.serve", str(folder), "--port", "0"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    heard = lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)  # noqa: E731  (not so where the tests run behind a shell's "&")
    with subprocess.Popen(command, preexec_fn=heard, **pipes) as process:
        try:
            lines = []
            while not lines or not lines[-1].startswith("Ctrl-C"):
                line = process.stdout.readline()
                assert line, process.stderr.read()
                lines.append(line.rstrip("\n"))
            yield process, lines
        finally:
            process.kill()


def get(url, path):
    """Returns the status, the type and the text of an answer."""
    connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=60)
    connection.request("GET", path)
    answer = connection.getresponse()
    return answer.status, answer.headers["Content-Type"], answer.read().decode()


def state(url, model):
    return {one.version: one.state for one in Client(url, model=model).status()}


@pytest.mark.proof("`serving.serve` answers 32 clients at once and takes up a new version meanwhile; Ctrl-C ends it")
def test_clients_at_once_and_a_new_version(export, size, seen):
    count = size(128, full=3200)
    with running(export) as (process, lines), ThreadPoolExecutor(32) as pool:
        (url,) = re.findall(r"Open it:  (http://127\.0\.0\.1:\d+)/", "\n".join(lines))
        texts = [f"text {number} {'y' * (number % 30)}" for number in range(count)]
        clients = [Client(url, model=export.name, retries=0) for _ in range(32)]
        translate = lambda number: clients[number % 32].translate(texts[number])  # noqa: E731
        first = [pool.submit(translate, number) for number in range(count // 2)]
        shutil.copytree(export / "1", export / "unfinished")
        os.rename(export / "unfinished", export / "2")
        while state(url, export.name).get(2) != "AVAILABLE":
            assert translate(0) == texts[0].upper()
        second = [pool.submit(translate, number) for number in range(count // 2, count)]
        assert [answer.result() for answer in first + second] == [text.upper() for text in texts]
        while state(url, export.name)[1] != "END":
            assert process.poll() is None
        assert json.loads(get(url, f"/v1/models/{export.name}/metadata")[2])["model_spec"]["version"] == "2"
        process.send_signal(signal.SIGINT)
        rest, errors = process.communicate(timeout=60)
    assert (process.returncode, "Traceback" in errors) == (0, False)
    assert "version 2 serves" in rest and rest.endswith("\nended\n")
    assert any("not for production" in line for line in lines)
    seen(f"{count:,} requests")


def test_what_it_says_at_the_start_is_true(export):
    with make_server(export, "127.0.0.1", 0) as server:
        text = "\n".join(welcome(server.url, server.models[export.name]))
        command = shlex.split(re.search("curl.*", text)[0])
        assert command[:2] == ["curl", "-d"]
        connection = http.client.HTTPConnection(server.url.removeprefix("http://"))
        connection.request("POST", command[3].removeprefix(server.url), command[2])
        assert json.loads(connection.getresponse().read())["predictions"][0]["translation"] == SENTENCE.upper()


def test_the_page_asks_the_address_from_which_it_comes(export):
    with make_server(export, "127.0.0.1", 0) as server:
        for path in ("/", "/playground.html", "/?model=other"):
            status, kind, text = get(server.url, path)
            assert (status, kind) == (200, "text/html; charset=utf-8")
        settings = json.loads(re.search(r'id="settings">(.*?)</script>', text, re.DOTALL)[1])
    assert (settings["url"], settings["model"], settings["limits"]) == ("", export.name, {"beam_size": 3})
    assert settings["examples"] == [SENTENCE]


def test_without_a_page_of_its_own_an_export_has_the_general_one(server):
    assert '"limits": {}, "examples": []' in get(server.url, "/")[2]
    assert get(server.url, "/favicon.ico")[0] == 404


def test_a_version_can_be_named_by_its_folder(versions):
    folder = versions(1)
    versions(2)
    with make_server(folder / "1", "127.0.0.1", 0) as server:
        assert state(server.url, folder.name) == {1: "AVAILABLE"}


def test_requests_are_batched_as_the_file_says(export):
    assert read_batching(export / "batching_parameters.txt") == Batching(
        max_batch_size=32,
        batch_timeout=0.002,
        max_enqueued_batches=64,
        num_batch_threads=2,
        allowed_batch_sizes=(1, 2, 4, 8, 16, 32),
    )
    with make_server(export, "127.0.0.1", 0) as server:
        assert Client(server.url, model=export.name).translate(["a", "b", "c"]) == ["A", "B", "C"]
        assert server.models[export.name].batches == {(3, 4): 1}


def test_labels_are_those_of_the_file_whenever_it_is_written(export):
    with make_server(export, "127.0.0.1", 0) as server:
        path = f"/v1/models/{export.name}/labels/stable"
        assert get(server.url, path)[0] == 400
        (export / "models.config").write_text('version_labels { key: "stable" value: 1 }')
        server.poll()
        assert json.loads(get(server.url, path)[2])["model_version_status"][0]["version"] == "1"


def test_addresses_without_a_model_and_with_numbers_that_are_too_large(server):
    assert json.loads(get(server.url, "/v1/models")[2]) == {"error": "Missing model name in request."}
    status, _, text = get(server.url, f"/v1/models/toy/versions/{'9' * 5000}")
    assert (status, "to numeric value." in text) == (400, True)


def test_what_is_nested_too_deeply_is_refused(server):
    for depth in (40, 900, 100_000):
        for front, behind in ((b'{"inputs": ', b"}"), (b'{"inputs": ["a", ', b"]}")):
            body = front + b"[" * depth + b"]" * depth + behind
            connection = http.client.HTTPConnection(server.url.removeprefix("http://"))
            connection.request("POST", f"/v1/models/{next(iter(server.models))}:predict", body)
            answer = connection.getresponse()
            assert (answer.status, set(json.loads(answer.read()))) == (400, {"error"})


def test_a_page_from_elsewhere_may_ask(server):
    """So that playground.html works when it is opened as a file."""
    connection = http.client.HTTPConnection(server.url.removeprefix("http://"))
    connection.request("OPTIONS", "/v1/models/toy:predict")
    answer = connection.getresponse()
    assert (answer.status, answer.headers["Access-Control-Allow-Origin"], answer.read()) == (200, "*", b"")


def sent(server, data):
    """Sends bytes, and returns the status and the content of the answer, after which the server must close."""
    with socket.create_connection(server.server.server_address, timeout=60) as connection:
        connection.sendall(data)
        answer = http.client.HTTPResponse(connection)
        answer.begin()
        content = answer.read()
        assert answer.headers["Connection"] == "close"
        assert connection.recv(1) == b""
    return answer.status, json.loads(content)


@pytest.mark.proof("`serving.serve` answers what is not HTTP, or too much of it, with an error in JSON")
@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"nonsense\r\n\r\n", 400),
        (b"GET\r\n\r\n", 400),
        (b"GET / HTTP/one\r\n\r\n", 400),
        (b"\xff\xfe\xfd \x00 HTTP/1.1\r\n\r\n", 501),
        (b"BREW / HTTP/1.1\r\n\r\n", 501),
        (b"GET / HTTP/2.0\r\n\r\n", 505),
        (b"GET /" + b"x" * 70_000 + b" HTTP/1.1\r\n\r\n", 414),
        (b"GET / HTTP/1.1\r\nlong: " + b"x" * 70_000 + b"\r\n\r\n", 431),
        (b"GET / HTTP/1.1\r\n" + b"many: x\r\n" * 200 + b"\r\n", 431),
        (b"POST /v1/models/toy:predict HTTP/1.1\r\nContent-Length: -1\r\n\r\n", 400),
        (b"POST /v1/models/toy:predict HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", 400),
        (b"POST /v1/models/toy:predict HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % (MOST_BYTES + 1), 413),
        (b"POST /v1/models/toy:predict HTTP/1.1\r\nContent-Length: " + b"9" * 5000 + b"\r\n\r\n", 413),
        (b"POST /v1/models/toy:predict HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", 411),
    ],
)
def test_what_is_not_http_gets_an_error(server, data, status):
    found, answer = sent(server, data)
    assert (found, set(answer)) == (status, {"error"})


def test_a_client_that_falls_silent_is_left(server, monkeypatch):
    monkeypatch.setattr(Handler, "timeout", 0.05)
    for beginning in (b"", b"GET /v1", b"POST / HTTP/1.1\r\nContent-Length: 9\r\n\r\nbody"):
        with socket.create_connection(server.server.server_address, timeout=60) as connection:
            connection.sendall(beginning)
            assert connection.recv(1) == b""


def test_a_large_body_is_asked_for_before_it_is_sent(server):
    body = b'{"inputs": ["a"], "signature_name": "one"}'
    name = next(iter(server.models)).encode()
    head = b"POST /v1/models/%s:predict HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: %d\r\n\r\n"
    with socket.create_connection(server.server.server_address, timeout=60) as connection:
        connection.sendall(head % (name, len(body)))
        assert connection.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"
        connection.sendall(body)
        answer = http.client.HTTPResponse(connection)
        answer.begin()
        assert json.loads(answer.read()) == {"outputs": ["a"]}
    assert sent(server, head % (name, MOST_BYTES + 1))[0] == 413


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH"])
def test_other_methods_are_malformed_requests(server, method):
    connection = http.client.HTTPConnection(server.url.removeprefix("http://"))
    connection.request(method, "/v1/models/toy")
    answer = connection.getresponse()
    assert (answer.status, json.loads(answer.read())) == (400, {"error": f"Malformed request: {method} /v1/models/toy"})


def test_what_cannot_be_served_is_said_in_a_line(tmp_path, versions, toy, server, capsys):
    (tmp_path / "empty").mkdir()
    (tmp_path / "damaged" / "1").mkdir(parents=True)
    (tmp_path / "garbage" / "1").mkdir(parents=True)
    (tmp_path / "garbage" / "1" / "saved_model.pb").write_text("garbage\n")
    port = str(server.server.server_address[1])
    for arguments, message in [
        ([tmp_path / "nothing"], r"is not an export: .*serving\.export RUN"),
        ([tmp_path / "empty"], "is not an export: "),
        ([tmp_path / "damaged"], "version 1 in .* cannot be loaded: .*saved_model.pb.* Export it again"),
        ([tmp_path / "garbage"], "version 1 in .* cannot be loaded: .* Export it again"),
        ([toy, "--port", port], f"cannot listen at 127.0.0.1, port {port}: Address already in use. Choose others with --port"),
        ([toy, "--port", "70000"], "cannot listen at 127.0.0.1, port 70000"),
        ([toy, "--host", "256.0.0.1"], "cannot listen at 256.0.0.1"),
    ]:
        assert main([str(argument) for argument in arguments]) == 2
        errors = capsys.readouterr().err
        assert re.fullmatch(f"error: .*{message}.*\n", errors), errors
    with pytest.raises(SystemExit):
        main(["--help"])
    assert "not for production" in capsys.readouterr().out
