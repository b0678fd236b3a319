import io
import json
import subprocess
import sys
import threading
import types
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

import keras_transformer.serving.client as module
from keras_transformer.serving import Client, ServingError
from keras_transformer.serving.answers import Alignment, Hypothesis, ModelVersion, ServedTranslation, TargetScore
from keras_transformer.serving.command import main
from keras_transformer.serving.local.batching import Batching
from tests.serving.local_servers import serving

ANSWER = {"outputs": {"translation": ["A"], "score": [-1.0], "truncated": [False]}}


@pytest.fixture(scope="module")
def server(toy):
    with serving(toy) as server:
        yield server


@pytest.fixture
def client(server):
    server.requests.clear()
    with Client(server.url, model="toy") as client:
        yield client


@pytest.fixture
def pauses(monkeypatch):
    """The pauses that the client would have made."""
    found = []
    monkeypatch.setattr(module.time, "sleep", found.append)
    return found


class Scripted:
    """A server that gives prepared answers: a status and what is sent as JSON, or a function of the handler."""

    def __init__(self, *answers):
        self.answers, self.requests = list(answers), []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                outer.requests.append((json.loads(body), dict(self.headers), self.client_address[1]))
                answer = outer.answers.pop(0)
                if callable(answer):
                    return answer(self)
                status, content = answer
                data = content if isinstance(content, bytes) else json.dumps(content).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *arguments):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.05})

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *error):
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


def test_translates_one_or_many_in_order(client):
    assert client.translate("a house") == "A HOUSE"
    assert client.translate(["a much longer text", "ü", "", "b"]) == ["A MUCH LONGER TEXT", "Ü", "", "B"]
    assert client.translate([]) == []
    assert client.translate("x" * 201, return_scores=True) == ServedTranslation("X" * 201, -20.1, True)


def test_any_text_can_be_sent(client):
    assert client.translate(["\ud800a", b"caf\xe9", '"\\\n\t\0\x7f', "\u2028😀"]) == ["�A", "CAF�", '"\\\n\t', "\u2028😀"]


def test_options_left_out_are_those_of_the_export(client):
    assert client.translate("a", beam_size=2) == "A (2 -1.00 0)"
    assert client.translate(["a", "b"], length_penalty=0, max_length=9) == ["A (0 0.00 9)", "B (0 0.00 9)"]


@pytest.mark.parametrize(
    "options",
    [
        {"beam_size": 0},
        {"beam_size": 2.5},
        {"beam_size": 2**31},
        {"length_penalty": -0.5},
        {"length_penalty": float("nan")},
        {"length_penalty": float("inf")},
        {"max_length": 0},
    ],
)
def test_options_out_of_range_are_refused(client, options):
    with pytest.raises(ValueError, match="must be at least"):
        client.translate("a", **options)


def test_nbest_score_and_align(client):
    assert client.nbest("Ab") == [Hypothesis("AB", -0.2), Hypothesis("ab", -0.7), Hypothesis("Ab", -2.2)]
    assert [len(found) for found in client.nbest(["a", "b"])] == [3, 3]
    assert client.score(["ab", "a"], ["a", "b c"]) == [TargetScore(-1.5, 2), TargetScore(-2.5, 3)]
    assert client.score("ab", "a") == TargetScore(-1.5, 2)
    found = client.align(["one", "the houses"])
    assert found[0] == Alignment("ONE", ["▁one"], ["▁ONE"], [[1.0]])
    assert found[1].target_tokens == ["▁THE", "▁HOUS", "ES"]
    assert [len(row) for row in found[1].weights] == [3, 3, 3]
    assert sum(found[1].weights[0]) == pytest.approx(1)


def test_hypotheses_that_were_not_found_are_left_out():
    with Scripted((200, {"outputs": {"translations": [["A", ""]], "scores": [[-1.0, -1e9]]}})) as server:
        assert Client(server.url, model="m").nbest("a") == [Hypothesis("A", -1.0)]


def test_pairs_must_match(client):
    with pytest.raises(ValueError, match="two lists of the same length"):
        client.score(["a"], ["b", "c"])
    with pytest.raises(ValueError, match="two texts"):
        client.score("a", ["b"])


@pytest.mark.proof("The client sends a long list in batches, those of similar length together, and gives the answers in order")
def test_long_lists_go_in_batches(server, size, seen):
    count = size(200, full=10_000)
    texts = [f"{number} {'x' * (number * 7 % 50)}" for number in range(count)]
    server.requests.clear()
    client = Client(server.url, model="toy", batch_size=16)
    assert client.translate(texts) == [text.upper() for text in texts]
    sizes = [len(json.loads(body)["inputs"]["text"]) for _, _, body in server.requests]
    seen(f"{count:,} texts in {len(sizes)} requests")
    assert max(sizes) == 16
    assert sum(sizes) == count
    lengths = [len(text) for _, _, body in server.requests for text in json.loads(body)["inputs"]["text"]]
    assert lengths == sorted(lengths)


@pytest.mark.proof("Clients that ask at once through a batching server (the local one) get the answers that they get alone")
def test_many_clients_at_once(toy, size, seen):
    count = size(120, full=5000)
    texts = [f"text {number} {'y' * (number % 30)}" for number in range(count)]
    with serving(toy, Batching(16, 0.005, allowed_batch_sizes=(1, 4, 16))) as server, ThreadPoolExecutor(8) as pool:
        client = Client(server.url, model="toy")
        found = list(pool.map(lambda number: client.translate(texts[number], beam_size=1 + number % 4), range(count)))
        batches = server.models["toy"].batches.total()
    seen(f"{count:,} requests in {batches:,} batches")
    assert found == [f"{text.upper()} ({1 + number % 4} -1.00 0)" for number, text in enumerate(texts)]
    assert batches < count


def test_versions_and_labels(server):
    assert Client(server.url, model="toy", version=1).translate("a") == "A"
    assert Client(server.url + "/", model="toy", label="stable").translate("a") == "A"
    with pytest.raises(ValueError, match="not both"):
        Client(server.url, model="toy", version=1, label="stable")


def test_status_and_metadata(client):
    assert client.status() == [ModelVersion(1, "AVAILABLE", "")]
    assert client.metadata()["score"] == {
        "inputs": {"source": {"dtype": "string", "shape": [-1]}, "target": {"dtype": "string", "shape": [-1]}},
        "outputs": {"log_probability": {"dtype": "float32", "shape": [-1]}, "token_count": {"dtype": "int32", "shape": [-1]}},
    }


@pytest.mark.parametrize("status", [429, 503, 504])
def test_an_overloaded_server_is_asked_again_later_and_later(pauses, status):
    with Scripted(*[(status, {"error": "full"})] * 3, (200, ANSWER)) as server:
        assert Client(server.url, model="toy").translate("a") == "A"
    assert len(pauses) == 3
    for attempt, pause in enumerate(pauses):
        assert 0.1 * 2**attempt <= pause <= 0.2 * 2**attempt


def test_it_gives_up_in_the_end(pauses):
    with Scripted(*[(503, {"error": "full"})] * 3) as server:
        with pytest.raises(ServingError, match=r"answered with 503: full. .*try again later") as error:
            Client(server.url, model="toy", retries=2).translate("a")
        assert len(server.requests) == 3
    assert error.value.status == 503


@pytest.mark.parametrize(
    ("status", "content"), [(400, {"error": "bad news"}), (500, b"<p>bad news from a proxy</p>"), (404, {"error": "bad news"})]
)
def test_what_will_not_change_is_asked_once(pauses, status, content):
    with Scripted((status, content)) as server:
        with pytest.raises(ServingError, match="bad news") as error:
            Client(server.url, model="toy").translate("a")
        assert len(server.requests) == 1
    assert error.value.status == status
    assert not pauses


@pytest.mark.parametrize("content", [b"<p>\nLog in " + b"x" * 500 + b"</p>", ["Log in"], {"status": "Log in"}])
def test_what_is_no_translation_server(pauses, content):
    with Scripted((200, content)) as server:
        with pytest.raises(ServingError, match=r":predict did not answer as .*Log in.* REST port") as error:
            Client(server.url, model="toy").translate("a")
        assert len(server.requests) == 1
    assert error.value.status == 200 and not error.value.can_retry
    assert "</p>" not in str(error.value) and not pauses


def test_a_connection_is_kept_and_replaced_when_the_server_closed_it(pauses):
    def answer_and_close(handler):
        handler.close_connection = True
        data = json.dumps(ANSWER).encode()
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(data)))
        handler.end_headers()
        handler.wfile.write(data)

    with Scripted((200, ANSWER), answer_and_close, (200, ANSWER)) as server:
        client = Client(server.url, model="toy")
        assert [client.translate("a") for _ in range(3)] == ["A"] * 3
        ports = [port for _, _, port in server.requests]
    assert ports[0] == ports[1] != ports[2]
    assert not pauses


def test_slow_answers_are_given_up_and_not_asked_for_again(pauses):
    end = threading.Event()
    with Scripted(lambda handler: end.wait(30)) as server:
        with pytest.raises(ServingError, match=r"took more than 0.05 s.*`batch_size`"):
            Client(server.url, model="toy", timeout=0.05).translate("a")
        end.set()
        assert len(server.requests) == 1


def test_nobody_there(pauses):
    with pytest.raises(ServingError, match=r"No answer from http://127.0.0.1:1/.*Is the server running") as error:
        Client("http://127.0.0.1:1", model="toy", retries=2).translate("a")
    assert error.value.status is None
    assert len(pauses) == 2


def test_what_is_no_http_server(pauses):
    def answer(handler):
        handler.wfile.write(b"\0\0\1 not HTTP\r\n\r\n")

    with Scripted(answer) as server, pytest.raises(ServingError, match="is this its port"):
        Client(server.url, model="toy", retries=0).translate("a")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"model": "other"}, "Versions of 'other' on the server: none. Is the name"),
        ({"model": "toy", "version": 7}, "Versions of 'toy' on the server: 1 AVAILABLE"),
        ({"model": "toy", "label": "x"}, "No version has this label"),
    ],
)
def test_unknown_models_and_versions_are_explained(server, options, message):
    with pytest.raises(ServingError, match=message):
        Client(server.url, **options).translate("a")


def test_batches_that_are_too_large_are_explained(toy):
    with serving(toy, Batching(4)) as server:
        with pytest.raises(ServingError, match="smaller `batch_size`"):
            Client(server.url, model="toy").translate(["a"] * 5)
        assert Client(server.url, model="toy", batch_size=4).translate(["a"] * 5) == ["A"] * 5


def test_a_proxy_may_want_headers_and_a_path():
    with Scripted((200, ANSWER)) as server:
        client = Client(server.url + "/behind", model="a model/with: signs", headers={"Authorization": "Bearer secret"})
        assert client.translate("a") == "A"
        assert server.requests[0][1]["Authorization"] == "Bearer secret"


def test_waits_until_a_version_is_ready(versions, monkeypatch, tmp_path):
    (tmp_path / "versions").mkdir()
    with serving(tmp_path / "versions") as server:
        client = Client(server.url, model="toy")
        with pytest.raises(ServingError, match=r"Not ready after 0 s.*Could not find any versions"):
            client.wait_until_ready(timeout=0)

        def arrive(seconds):
            versions(3)
            server.poll()

        monkeypatch.setattr(module.time, "sleep", arrive)
        assert client.wait_until_ready() == ModelVersion(3, "AVAILABLE", "")


def test_says_why_a_version_is_not_ready(tmp_path):
    (tmp_path / "1").mkdir()
    with serving(tmp_path) as server, pytest.raises(ServingError, match=r"not ready: 1 END .*saved_model.pb"):
        Client(server.url, model="toy").wait_until_ready(timeout=0)


def test_urls_of_other_kinds_are_refused():
    with pytest.raises(ValueError, match=r"must begin with http://, https:// or grpc://. Received: url='localhost:8501'"):
        Client("localhost:8501", model="toy")
    with pytest.raises(ValueError, match="batch_size"):
        Client(model="toy", batch_size=0)


def run(server, *arguments):
    return main(["--url", server.url, "--model", "toy", *arguments])


def test_command_line(server, capsys, monkeypatch):
    assert run(server, "a house", "b") == 0
    assert capsys.readouterr().out == "A HOUSE\nB\n"
    monkeypatch.setattr(sys, "stdin", io.StringIO("one\r\n\ntwo\n"))
    assert run(server, "--scores", "--beam-size", "2") == 0
    assert capsys.readouterr().out == "-0.3000\tONE (2 -1.00 0)\n0.0000\t (2 -1.00 0)\n-0.3000\tTWO (2 -1.00 0)\n".replace(
        "\n0.", "\n-0."
    )
    assert run(server, "--nbest", "Ab") == 0
    assert capsys.readouterr().out == "1\tAB\n1\tab\n1\tAb\n"
    assert run(server, "--score", "ab\ta") == 0
    assert capsys.readouterr().out == "-1.5000\t2\n"
    assert run(server, "--status") == 0
    assert capsys.readouterr().out == "1\tAVAILABLE\n"
    assert run(server, "--metadata") == 0
    assert "score\n  <- source: string [-1]\n" in capsys.readouterr().out


def test_a_line_for_each_line(server, capsys, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"one\rtwo\r\ncaf\xe9\n"), encoding="utf8"))
    assert run(server) == 0
    assert capsys.readouterr().out == "ONE TWO\nCAF\ufffd\n"


def test_who_types_has_an_answer_to_each_line(server, capsys, monkeypatch):
    def typed_lines():
        yield b"one\n"
        assert capsys.readouterr().out == "ONE\n", "The next line was wanted before the first was answered"
        yield b"two\n"

    monkeypatch.setattr(sys, "stdin", types.SimpleNamespace(buffer=typed_lines(), isatty=lambda: True))
    assert run(server) == 0
    assert capsys.readouterr().out == "TWO\n"


def test_command_line_errors(server, capsys):
    assert run(server, "--score", "no tab") == 2
    assert "a tab" in capsys.readouterr().err
    assert run(server, "--version", "9", "a") == 1
    assert "1 AVAILABLE" in capsys.readouterr().err


def test_runs_as_a_module_without_tensorflow():
    code = (
        "import runpy, sys; sys.argv = ['client', '--help']\n"
        "try: runpy.run_module('keras_transformer.serving.client', run_name='__main__')\n"
        "except SystemExit: print('tensorflow' in sys.modules)"
    )
    result = subprocess.run(
        [sys.executable, "-W", "error::RuntimeWarning", "-c", code], capture_output=True, text=True, check=False
    )
    assert "python -m keras_transformer.serving.client" in result.stdout, result.stderr
    assert result.stdout.strip().endswith("False")
