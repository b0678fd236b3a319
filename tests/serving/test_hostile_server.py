"""Whatever a server sends, a call of the client gives a right answer or a `ServingError`, in time."""

import math
import os
import shutil
import socket
import ssl
import subprocess
import sys
import traceback
from collections import Counter

import pytest

from keras_transformer.serving import Client, ServingError
from keras_transformer.serving.answers import Hypothesis, ModelVersion, ServedTranslation
from keras_transformer.serving.command import main
from tests.serving.hostile import FAULTS, HANG, HONEST, PAUSE, RESET, HostileServer, hostile_answer, http
from tests.serving.hostile_calls import CALLS, HUNG, LIMIT, TEXTS, TIMEOUT, check_message, fits, outcome
from tests.serving.local_servers import serving


@pytest.fixture(scope="module")
def answers(toy):
    """What a server answers to a request."""
    with serving(toy) as server:
        known = {}

        def answer(*request):
            if request not in known:
                known[request] = server.answer(*request)
            return known[request]

        yield answer


@pytest.mark.proof("Whatever a server sends, a call of the client gives a right answer or a `ServingError`, and soon enough")
def test_hostile_answers(answers, size, seen):
    count, turn = size(60, full=2000), {}

    def answer(*request):
        if turn["number"] is None:
            return [http(answers(*request))]
        turn["kind"], pieces = hostile_answer(turn["number"], answers(*request))
        return pieces

    outcomes, slowest = Counter(), 0
    with HostileServer(answer) as server:
        for number in range(count):
            turn["number"] = number
            (name, (call, kind)), retries = list(CALLS.items())[number % len(CALLS)], 2 * (number % 10 == 0)
            client = Client(server.url, model="toy", timeout=TIMEOUT, retries=retries, max_answer_bytes=LIMIT)
            result, seconds = outcome(call, client)
            what = f"number {number}, {name}, {turn['kind']}: {result!r:.300}"
            if isinstance(result, ServingError):
                check_message(result)
            else:
                assert fits(result, kind), what
                assert not isinstance(result, list) or "status" in name or len(result) == len(TEXTS), what
            outcomes[type(result).__name__ if isinstance(result, Exception) else "right answers"] += 1
            slowest = max(slowest, seconds)
            turn["number"] = None  # The client is as good as new.
            client.timeout = HUNG
            assert fits(outcome(call, client)[0], kind), what
            client.close()
        assert "/trap" not in server.requests
    assert set(outcomes) == {"ServingError", "right answers"}
    seen(f"{count:,} answers: {dict(outcomes)}; the slowest call took {slowest:.2f} s of a timeout of {TIMEOUT} s")


@pytest.mark.parametrize("name", HONEST)
def test_right_answers_of_every_kind(answers, name):
    with (
        HostileServer(lambda *request: HONEST[name](answers(*request))) as server,
        Client(server.url, model="toy", timeout=HUNG, retries=0) as client,
    ):
        assert client.translate(["a house", "b"]) == ["A HOUSE", "B"]
        assert client.nbest("Ab")[0] == Hypothesis("AB", -0.2)
        assert client.status() == [ModelVersion(1, "AVAILABLE", "")]


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    """A certificate for 127.0.0.1 that nobody signed, and its key."""
    folder = tmp_path_factory.mktemp("certificate")
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    command += ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", "key", "-out", "certificate"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    return folder / "certificate", folder / "key"


@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl")
@pytest.mark.parametrize("name", [*HONEST, "one byte at a time", "endless body", "silence", "reset in the body"])
def test_over_tls(answers, certificate, monkeypatch, name):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)
    with HostileServer(lambda *request: (HONEST | FAULTS)[name](answers(*request)), context) as server:
        with pytest.raises(ServingError, match="certificate verify failed"):
            Client(server.url, model="toy", retries=0).translate("a")
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate[0]))
        client = Client(server.url, model="toy", retries=0, max_answer_bytes=LIMIT, timeout=TIMEOUT if name in FAULTS else HUNG)
        results = [outcome(lambda client: client.translate("a"), client)[0] for _ in range(2)]
    assert results == ["A", "A"] if name in HONEST else [type(result) for result in results] == [ServingError] * 2


@pytest.mark.parametrize("piece", [HANG, RESET, PAUSE])
def test_no_tls_there(piece):
    with HostileServer(lambda *request: [], greeting=piece) as server:
        client = Client(server.url.replace("http:", "https:"), model="toy", retries=0, timeout=TIMEOUT)
        assert isinstance(outcome(lambda client: client.translate("a"), client)[0], ServingError)


def asked(body, call=lambda client: client.translate(["a"], return_scores=True), **options):
    with HostileServer(lambda *request: [http(body)]) as server:
        return call(Client(server.url, model="toy", retries=0, **options))


RIGHT = b'{"outputs": {"translation": ["A"], "score": [-1.0], "truncated": [false]}}'


def test_the_right_answer():
    assert asked(RIGHT) == [ServedTranslation("A", -1.0, False)]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (b'"score": [-1.0], ', b"", "score is None"),
        (b'["A"]', b"null", "translation is None"),
        (b'["A"]', b"[5]", "translation is 5"),
        (b'"A"', b'"\\ud800"', "translation is"),
        (b'"A"', b'{"b64": "?"}', "translation is {'b64'"),
        (b"-1.0", b'"-1.0"', "score is '-1.0'"),
        (b"-1.0", b"NaN", "score is nan"),
        (b"-1.0", b"true", "score is True"),
        (b"-1.0", b"9" * 400, "score is 99999"),
        (b"-1.0", b"9" * 100_000, "4300 digits"),
        (b"-1.0", b"[" * 100_000, "recursion"),
        (b"false", b"0", "truncated is 0"),
        (b'["A"]', b'["A", "B"]', r"zip\(\)"),
        (b'["A"], "score": [-1.0], "truncated": [false]', b'[], "score": [], "truncated": []', "0 rows for 1 texts"),
        (b'{"outputs": {', b'{"predictions": [{', "delimiter"),
        (b"outputs", b"predictions", "outputs is None"),
        (RIGHT, b'{"predictions": [{"translation": "A", "score": -1.0, "truncated": false}]}', "outputs is None"),
        (RIGHT, RIGHT[:-1], "delimiter"),
        (RIGHT, b"[]", r"is \[\]"),
    ],
)
def test_what_is_wrong_with_an_answer_is_said(old, new, message):
    with pytest.raises(ServingError, match=rf"did not answer as TensorFlow Serving does.*{message}") as error:
        asked(RIGHT.replace(old, new))
    assert error.value.status == 200 and not error.value.can_retry


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("silence", "took more than 0.2 s"),
        ("one byte at a time", "took more than 0.2 s"),
        ("head at a byte a time", "took more than 0.2 s"),
        ("slow 100", "took more than 0.2 s"),
        ("endless head", "more than 100 headers"),
        ("endless 100", "more than 100,000 bytes.*max_answer_bytes"),
        ("endless body", "more than 100,000 bytes.*max_answer_bytes"),
        ("endless chunks", "more than 100,000 bytes.*max_answer_bytes"),
        ("length too long", "No answer from"),
        ("huge chunk", "took more than 0.2 s"),
        ("to a file", "answered with 302"),
        ("elsewhere", "answered with 307"),
        ("web page", r"\\x1b\[2J.*log in\\u202e"),
        ("error", r"answered with 400: \\x1b\[2J\\u202e\\ud800"),
    ],
)
def test_faults_of_the_protocol(name, message):
    with HostileServer(lambda *request: FAULTS[name](RIGHT)) as server:
        client = Client(
            server.url, model="toy", timeout=0.2 if "took" in message else HUNG, retries=0, max_answer_bytes=100_000
        )
        result, _ = outcome(lambda client: client.translate("a"), client)
    assert isinstance(result, ServingError), repr(result)
    with pytest.raises(ServingError, match=message):
        raise result
    check_message(result)


def test_retries_stay_within_the_timeout():
    with HostileServer(lambda *request: [PAUSE] * 20 + FAULTS["overloaded"](b"")) as server:
        result, _ = outcome(lambda client: client.translate("a"), Client(server.url, model="toy", timeout=1, retries=10**9))
    assert isinstance(result, ServingError)
    assert len(server.requests) < 10


def test_other_addresses_of_a_host_are_tried(answers, monkeypatch):
    with HostileServer(lambda *request: [http(answers(*request))]) as server:
        closed = socket.create_server(("127.0.0.1", 0))
        places = [closed.getsockname(), server.socket.getsockname()]
        closed.close()
        found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", place) for place in places]
        monkeypatch.setattr(socket, "getaddrinfo", lambda *arguments, **options: found)
        assert Client("http://somewhere", model="toy", retries=0).translate("a") == "A"


def test_waiting_for_a_server_that_never_answers_ends():
    with HostileServer(lambda *request: [HANG]) as server:
        result, _ = outcome(lambda client: client.wait_until_ready(0.1), Client(server.url, model="toy", timeout=10**6))
    assert "Not ready after 0.1 s" in str(result)


@pytest.mark.parametrize(
    "url",
    [
        "http://me:s3cret@host:8501",
        "http://host/?token=s3cret",
        "http://me:s3cret@host:port",
        "http://me:pass/s3cret@host",
        "ftp://me:s3cret@host",
        "grpc://me:s3cret@host",
        "http://",
        "http://host:99999",
        "http://[::1",
    ],
)
def test_secrets_in_urls_are_refused_and_not_shown(url):
    with pytest.raises(ValueError, match="The URL must") as error:
        Client(url, model="toy")
    assert "s3cret" not in "".join(traceback.format_exception(error.value)) and "me:" not in str(error.value)


def test_headers_that_cannot_be_sent_are_refused_and_not_shown():
    with pytest.raises(ValueError, match="Received: 'Authorization'") as error:
        Client(model="toy", headers={"Authorization": "Bearer s3cret\n"})
    assert "s3cret" not in str(error.value)


@pytest.mark.parametrize("options", [{"timeout": 0}, {"timeout": math.nan}, {"timeout": math.inf}, {"retries": -1}])
def test_options_that_make_no_sense_are_refused(options):
    with pytest.raises(ValueError, match=next(iter(options))):
        Client(model="toy", **options)


def test_what_would_steer_a_terminal_is_escaped_on_one(capsys, monkeypatch):
    body = RIGHT.replace(b'"A"', '"\\u001b[2JA\\u202e\u200c\u00a0"'.encode())

    def printed():
        with HostileServer(lambda *request: [http(body)]) as server:
            assert main(["--url", server.url, "--model", "toy", "--scores", "a"]) == 0
        return capsys.readouterr().out

    assert printed() == "-1.0000\t\x1b[2JA\u202e\u200c\u00a0\n"
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert printed() == "-1.0000\t\\x1b[2JA\\u202e\u200c\u00a0\n"


def test_nobody_reads_on(answers, capsys, monkeypatch):
    reader, writer = os.pipe()
    os.close(reader)
    with HostileServer(lambda *request: [http(answers(*request))]) as server, open(writer, "w") as stream:
        monkeypatch.setattr(sys, "stdout", stream)
        assert main(["--url", server.url, "--model", "toy", "--metadata"]) == 1
    assert capsys.readouterr().err == ""
