import ctypes
import json
import resource
import shutil
import struct
import subprocess
import sys
import sysconfig
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from google.protobuf import text_format
from tensorflow.core.protobuf import config_pb2

from keras_transformer.serving import runtime
from keras_transformer.serving.runtime import SavedModelSession, TensorFlowError, TensorInfo
from keras_transformer.serving.server_files import SESSION
from tests.serving.other_runtimes import alone

INVALID, DEADLINE_EXCEEDED = 3, 4
VIEW, HEAP, OFFSET = 3, 1, 2


@pytest.fixture(scope="module")
def session(toy_version):
    with SavedModelSession(toy_version, 1, 2) as session:
        yield session


def echo(session, strings):
    count = len(strings)
    inputs = {
        "text": strings,
        "number": [0.5] * count,
        "integer": [-7] * count,
        "long": [2**40] * count,
        "flag": [True] * count,
    }
    return session.run("echo", inputs)


def test_knows_the_signatures(session):
    signature = session.signatures["align"]
    assert list(signature.inputs) == ["text"]
    assert {name: (info.dtype, info.shape) for name, info in signature.outputs.items()} == {
        "alignment": ("float32", (-1, -1, -1)),
        "source_tokens": ("string", (-1, -1)),
        "target_tokens": ("string", (-1, -1)),
        "translation": ("string", (-1,)),
    }
    assert not any(name.startswith("__") for name in session.signatures)


def test_values_of_every_type_pass_through(session):
    found = echo(session, ["a", "b"])
    assert {name: str(array.dtype) for name, array in found.items()} == {
        "text": "object", "text_bytes": "object", "number": "float32", "integer": "int32", "long": "int64", "flag": "bool",
    }  # fmt: skip
    assert found["long"].tolist() == [2**40, 2**40]
    assert found["integer"].tolist() == [-7, -7]
    assert found["flag"].tolist() == [True, True]


@pytest.mark.parametrize("length", [0, 1, 22, 23, 24, 1000, 100_000])
def test_strings_of_any_length_and_bytes(session, length):
    strings = [b'\0\xff\n"x' * (length // 5) + b"y" * (length % 5), b"z" * length, "ü" * length]
    assert echo(session, strings)["text"].tolist() == [strings[0], strings[1], strings[2].encode()]
    upper = session.run("serving_default", {"text": ["ä" * length, "b" * length]})["translation"]
    assert upper.tolist() == [("Ä" * length).encode(), b"B" * length]


def test_every_kind_of_string_is_read():
    text = ctypes.create_string_buffer(b"somewhere else")
    place = ctypes.addressof(text)
    data = ctypes.create_string_buffer(3 * runtime.STRING_BYTES + 8)
    struct.pack_into("<QQQ", data, 0, 14 << 2 | HEAP, 14, place)
    struct.pack_into("<QQ", data, 24, 9 << 2 | VIEW, place)
    struct.pack_into("<III", data, 48, 4 << 2 | OFFSET, 24, 1)
    data[72:76] = b"near"
    start = ctypes.addressof(data)
    assert [runtime.read_string(data.raw, at, start) for at in (0, 24, 48)] == [b"somewhere else", b"somewhere", b"near"]


def test_empty_batches_and_tensors_of_higher_rank(session):
    assert session.run("serving_default", {"text": []})["translation"].shape == (0,)
    assert session.run("align", {"text": ["one two three", "one"]})["alignment"].shape == (2, 4, 4)


def test_errors_of_the_graph_have_tensorflows_message_and_harm_nothing(session):
    with pytest.raises(TensorFlowError, match="was told to fail") as error:
        session.run("fails", {"text": ["good", "fail"]})
    assert error.value.code == INVALID
    assert session.run("fails", {"text": ["good"]})["text"].tolist() == [b"good"]


def test_a_run_can_be_given_up(session):
    with pytest.raises(TensorFlowError) as error:
        session.run("waits", {"text": ["wait"]}, timeout=0.05)
    assert error.value.code == DEADLINE_EXCEEDED


@pytest.mark.parametrize(
    ("signature", "inputs", "message"),
    [
        ("nothing", {}, "has the signatures .*Received: signature='nothing'"),
        ("serving_default", {}, r"takes the inputs \['text'\]. Received: \[\]"),
        ("serving_default", {"text": ["a"], "more": [1]}, r"Received: \['more', 'text'\]"),
        ("compiled", {"number": ["a"]}, "'number' is of type float32"),
        ("serving_default", {"text": [5]}, "'text' is of type string"),
        ("translate_with_options", {"text": ["a"], "beam_size": [1.5], "length_penalty": [1], "max_length": [1]}, "int32"),
    ],
)
def test_what_does_not_fit_the_signature_is_refused(session, signature, inputs, message):
    with pytest.raises(ValueError, match=message):
        session.run(signature, inputs)


def test_what_is_no_saved_model_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"no saved_model.pb"):
        SavedModelSession(tmp_path)


def test_damage_is_reported(toy_version, tmp_path):
    damaged = tmp_path / "damaged"
    shutil.copytree(toy_version, damaged)
    (damaged / "saved_model.pb").write_bytes((damaged / "saved_model.pb").read_bytes()[:1000])
    with pytest.raises(TensorFlowError):
        SavedModelSession(damaged)


def test_closing_waits_for_runs_and_refuses_more(toy_version):
    session = SavedModelSession(toy_version, 1, 1)
    with ThreadPoolExecutor(4) as pool:
        texts = [f"text {number}" for number in range(40)]
        runs = [pool.submit(session.run, "serving_default", {"text": [text]}) for text in texts[:20]]
        runs[0].result()
        session.close()
        runs += [pool.submit(session.run, "serving_default", {"text": [text]}) for text in texts[20:]]
    answers = [None if run.exception() else run.result()["translation"][0].decode() for run in runs]
    assert answers[0] == "TEXT 0"
    assert all(answer in (None, text.upper()) for answer, text in zip(answers, texts, strict=True))
    assert answers[20:] == [None] * 20
    assert isinstance(runs[-1].exception(), ValueError)
    session.close()


@pytest.mark.proof("Threads share a session of the C runtime: each gets its own answers")
def test_threads_get_their_own_answers(session, size, seen):
    count = size(400, full=20_000)
    texts = [f"thread {number} {'x' * (number % 60)}" for number in range(count)]
    with ThreadPoolExecutor(16) as pool:
        found = list(pool.map(lambda text: session.run("serving_default", {"text": [text, "other"]})["translation"], texts))
    seen(f"{count:,} runs by 16 threads")
    assert [pair.tolist() for pair in found] == [[text.upper().encode(), b"OTHER"] for text in texts]


def test_memory_is_given_back(session):
    def run():
        echo(session, [b"x" * 2**20] * 2)
        session.run("serving_default", {"text": ["y" * 2**20]})

    run()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(40):
        run()
    growth = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before  # In kilobytes; the texts alone are 120,000.
    assert growth < 50_000


@pytest.mark.proof("A SavedModel runs in TensorFlow's C runtime with neither Python's TensorFlow nor this package")
def test_runs_as_a_file_of_its_own(toy_version, tmp_path, seen):
    code = (
        "import sys; sys.path.insert(0, '.'); import runtime\n"
        "with runtime.SavedModelSession(sys.argv[1]) as session:\n"
        "    print(session.run('serving_default', {'text': ['ä b']})['translation'][0].decode())\n"
        "    print(sorted({'tensorflow', 'keras', 'keras_transformer'} & set(sys.modules)))\n"
    )
    result = alone(tmp_path, toy_version, code=code)
    assert result.stdout.splitlines() == ["Ä B", "[]"], result.stderr
    seen("neither is imported")


def test_answers_lines_of_requests(toy_version, tmp_path):
    requests = [{"inputs": {"text": ["ä", ""]}}, {"signature": "score", "inputs": {"source": ["a"], "target": ["b c"]}}]
    result = alone(tmp_path, toy_version, requests="".join(json.dumps(request) + "\n" for request in requests))
    answers = [json.loads(line) for line in result.stdout.splitlines()]
    assert answers[0]["translation"] == ["Ä", ""]
    assert answers[1] == {"log_probability": [-2.5], "token_count": [3]}


BAD_LINES = [
    b"no JSON",
    b"",
    b"\xff\xfe",
    b"[" * 100_000,
    b"[]",
    b'"text"',
    b"{}",
    b'{"inputs": ["a"]}',
    b'{"inputs": null}',
    b'{"signature": "nothing", "inputs": {"text": ["a"]}}',
    b'{"signature": ["score"], "inputs": {"text": ["a"]}}',
    b'{"inputs": {"text": "a", "more": 1}}',
    b'{"inputs": {"text": [5]}}',
    b'{"inputs": {"text": [["a"], ["b", "c"]]}}',
    b'{"inputs": {"text": ["\\ud800"]}}',
    b'{"signature": "compiled", "inputs": {"number": ["a"]}}',
    b'{"signature": "fails", "inputs": {"text": ["fail"]}}',
]


def test_a_bad_line_gets_an_error_and_the_others_their_answers(toy_version, tmp_path):
    good = b'{"inputs": {"text": ["\xc3\xa4"]}}'
    (tmp_path / "requests").write_bytes(b"\n".join([good, *BAD_LINES, good]) + b"\n")
    shutil.copy(runtime.__file__, tmp_path)
    command = [sys.executable, "-I", tmp_path / "runtime.py", toy_version]
    with open(tmp_path / "requests", "rb") as requests:
        result = subprocess.run(command, stdin=requests, capture_output=True, text=True, timeout=300, check=False)
    first, *errors, last = map(json.loads, result.stdout.splitlines())
    assert first["translation"] == last["translation"] == ["Ä"]
    assert len(errors) == len(BAD_LINES)
    for line, error in zip(BAD_LINES, errors, strict=True):
        assert list(error) == ["error"] and error["error"], line
    assert result.returncode == 1
    assert f"error: {len(BAD_LINES)} lines could not be answered, the first because: " in result.stderr
    assert "Traceback" not in result.stderr


def test_xla_refuses_to_compile_as_in_the_server(toy_version, tmp_path):
    result = alone(tmp_path, toy_version, requests='{"signature": "compiled", "inputs": {"number": [1.0]}}\n')
    assert result.returncode != 0
    assert "XLA compilation disabled" in result.stderr


def test_another_environments_packages(toy_version, tmp_path):
    purelib = sysconfig.get_path("purelib")
    result = alone(tmp_path, toy_version, "--packages", purelib, requests='{"inputs": {"text": ["a"]}}\n')
    assert json.loads(result.stdout)["translation"] == ["A"]
    result = alone(tmp_path, toy_version, "--packages", tmp_path)
    assert "tensorflow is not installed in" in result.stderr


def test_the_configuration_is_that_of_the_file_beside_an_export():
    config = config_pb2.ConfigProto.FromString(runtime.config_proto(2, 300))
    assert (config.intra_op_parallelism_threads, config.inter_op_parallelism_threads) == (2, 300)
    assert config.use_per_session_threads
    assert config.graph_options.optimizer_options.global_jit_level == config_pb2.OptimizerOptions.OFF
    written = text_format.Parse(SESSION, config_pb2.ConfigProto())
    assert written.graph_options.rewrite_options == config.graph_options.rewrite_options
    alone = config_pb2.ConfigProto.FromString(runtime.config_proto(None, None))
    assert alone.inter_op_parallelism_threads == 0 and not alone.use_per_session_threads


def test_messages_are_read_whatever_else_they_hold():
    field = runtime.field
    shape = field(2, field(1, -1) + field(2, b"name of the axis")) + field(2, field(1, 300)) + field(2, b"")
    fixed = bytes([9 << 3 | 1, *range(8)]) + bytes([10 << 3 | 5, *range(4)])  # Fields of eight and of four bytes.
    info = fixed + field(1, b"place:3") + field(2, 9) + field(3, shape)
    unknown = field(1, b"other:0") + field(2, 99) + field(3, field(3, 1))
    signature = field(1, field(1, b"in") + field(2, info)) + field(2, field(1, b"out") + field(2, unknown))
    graph = field(2, b"a graph") + field(5, field(1, b"serve") + field(2, signature)) + field(5, field(1, b"__hidden"))
    found = runtime.read_signatures(graph)
    assert list(found) == ["serve"]
    assert found["serve"].inputs == {"in": TensorInfo("place:3", "int64", (-1, 300, 0))}
    assert found["serve"].outputs == {"out": TensorInfo("other:0", "type 99", None)}


def test_numpy_strings_are_taken_too(session):
    found = session.run("serving_default", {"text": np.array(["ab", "c"])})
    assert found["translation"].tolist() == [b"AB", b"C"]
