import importlib.util
import random
import threading
from collections import Counter
from concurrent import futures

import pytest

import keras_transformer.serving.client as module
from keras_transformer.serving import Client, ServingError
from keras_transformer.serving.answers import Hypothesis, ModelVersion, ServedTranslation, TargetScore
from keras_transformer.serving.runtime import SavedModelSession
from tests.serving.hostile import mutated_bytes
from tests.serving.hostile_calls import CALLS, HUNG, LIMIT, TIMEOUT, check_message, fits, outcome

HAS_API = importlib.util.find_spec("tensorflow_serving") is not None
needs_api = pytest.mark.skipif(not HAS_API, reason="needs the package tensorflow-serving-api")


@pytest.mark.skipif(HAS_API, reason="the package is installed")
def test_says_what_to_install():
    with pytest.raises(ServingError, match=r'pip install "keras3-transformer\[serving\]"'):
        Client("grpc://localhost:8500", model="toy")


@pytest.fixture(scope="module")
def address(toy_version):
    """A stand-in for the gRPC side of TensorFlow Serving, around the C runtime. It is not TensorFlow Serving."""
    import grpc
    import tensorflow as tf
    from tensorflow_serving.apis import (
        get_model_metadata_pb2,
        get_model_status_pb2,
        model_service_pb2_grpc,
        predict_pb2,
        prediction_service_pb2_grpc,
    )

    session = SavedModelSession(toy_version)

    class Predictions(prediction_service_pb2_grpc.PredictionServiceServicer):
        def Predict(self, request, context):  # noqa: N802
            spec = request.model_spec
            if spec.name == "busy":
                context.abort(grpc.StatusCode.UNAVAILABLE, "queue is full")
            if spec.name != "toy" or spec.version.value > 1:
                context.abort(grpc.StatusCode.NOT_FOUND, "Servable not found for request")
            inputs = {name: tf.make_ndarray(tensor) for name, tensor in request.inputs.items()}
            response = predict_pb2.PredictResponse()
            for name, array in session.run(spec.signature_name, inputs).items():
                response.outputs[name].CopyFrom(tf.make_tensor_proto(array))
            return response

        def GetModelMetadata(self, request, context):  # noqa: N802
            response = get_model_metadata_pb2.GetModelMetadataResponse()
            signatures = get_model_metadata_pb2.SignatureDefMap()
            for name, found in session.signatures.items():
                for side, infos in (("inputs", found.inputs), ("outputs", found.outputs)):
                    for key, info in infos.items():
                        target = getattr(signatures.signature_def[name], side)[key]
                        target.dtype = tf.as_dtype(info.dtype).as_datatype_enum
                        for size in info.shape:
                            target.tensor_shape.dim.add(size=size)
            response.metadata["signature_def"].Pack(signatures)
            return response

    class Models(model_service_pb2_grpc.ModelServiceServicer):
        def GetModelStatus(self, request, context):  # noqa: N802
            response = get_model_status_pb2.GetModelStatusResponse()
            if request.model_spec.name != "toy":
                context.abort(grpc.StatusCode.NOT_FOUND, "Could not find any versions of model")
            response.model_version_status.add(version=1, state=30)
            return response

    server = grpc.server(futures.ThreadPoolExecutor(4))
    prediction_service_pb2_grpc.add_PredictionServiceServicer_to_server(Predictions(), server)
    model_service_pb2_grpc.add_ModelServiceServicer_to_server(Models(), server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    yield f"grpc://127.0.0.1:{port}"
    server.stop(None)
    session.close()


@needs_api
@pytest.mark.proof("The client gives over gRPC what it gives over REST")
def test_every_call(address):
    with Client(address, model="toy") as client:
        assert client.translate(["ä house", "", "b"]) == ["Ä HOUSE", "", "B"]
        assert client.translate("x" * 300, return_scores=True) == ServedTranslation("X" * 300, -30.0, True)
        assert client.translate("a", beam_size=2, length_penalty=1) == "A (2 1.00 0)"
        assert client.nbest("Ab")[0] == Hypothesis("AB", pytest.approx(-0.2))
        assert client.score(["ab", "a"], ["a", "b c"]) == [TargetScore(-1.5, 2), TargetScore(-2.5, 3)]
        found = client.align(["one", "the houses"])
        assert found[0].weights == [[1.0]]
        assert found[1].source_tokens == ["▁the", "▁hous", "es"]
        assert client.status() == [ModelVersion(1, "AVAILABLE", "")]
        assert client.wait_until_ready(0) == ModelVersion(1, "AVAILABLE", "")
        assert client.metadata()["score"]["inputs"]["source"] == {"dtype": "string", "shape": [-1]}


@needs_api
def test_errors(address, monkeypatch):
    pauses = []
    monkeypatch.setattr(module.time, "sleep", pauses.append)
    with pytest.raises(ServingError, match="Versions of 'other' on the server: none"):
        Client(address, model="other").translate("a")
    with pytest.raises(ServingError, match="Versions of 'toy' on the server: 1 AVAILABLE"):
        Client(address, model="toy", version=7).translate("a")
    assert not pauses
    with pytest.raises(ServingError, match="answered with 503: queue is full"):
        Client(address, model="busy", retries=2).translate("a")
    with pytest.raises(ServingError, match="Is the server running"):
        Client("grpc://127.0.0.1:1", model="toy", retries=1, timeout=10).translate("a")
    assert len(pauses) == 3


def mutated_response(chance, data):
    """Changes an output of a signature: its type, its shape, its values or its name."""
    from tensorflow_serving.apis import predict_pb2

    response = predict_pb2.PredictResponse.FromString(data)
    name = chance.choice(sorted(response.outputs))
    tensor = response.outputs[name]
    kind = chance.randrange(6)
    if kind == 0:
        tensor.dtype = chance.choice((0, 1, 2, 3, 7, 9, 10, 19, 99, -1))
    elif kind == 1:
        sizes = (
            (),
            (-1,),
            (10**9,),
            (2**62, 2**62),
            (1,) * 99,
            (2, -1),
            (0,),
            (3,),
            (2, 2**40),
            (2**40, 0),
            (0, 2**40),
            (-1, -1),
        )
        del tensor.tensor_shape.dim[:]
        for size in chance.choice(sizes):
            tensor.tensor_shape.dim.add(size=size)
    elif kind == 2:
        tensor.ClearField("tensor_content")
        tensor.ClearField("string_val")
    elif kind == 3:
        tensor.tensor_content = chance.choice((b"", b"123", b"\xff" * 8, b"\0\0\x80\x7f" * 2, b"x" * 10**5))
    elif kind == 4:
        response.outputs["x"].CopyFrom(tensor)
        del response.outputs[name]
    else:
        tensor.string_val.append(b"\xff\x1b[31m")
    return response.SerializeToString()


@needs_api
@pytest.mark.proof("Whatever a server sends over gRPC, a call of the client gives a right answer or a `ServingError`")
def test_hostile_answers(address, size, seen):
    import grpc

    real, ending, turn = grpc.insecure_channel(address.partition("://")[2]), threading.Event(), {}

    def answer(method, request, context):
        data = real.unary_unary(method)(request)
        if turn["number"] is None:
            return data
        chance = random.Random(turn["number"])
        kind = chance.randrange(10)
        if kind == 0:
            context.abort(chance.choice([code for code in grpc.StatusCode if code.name != "OK"]), "\x1b[2J\u202e" * 500)
        if kind == 1:
            ending.wait(HUNG)
        if kind == 2:
            return b"\x0a\xff\xff\xff\x7f" + b"x" * 2 * LIMIT
        return mutated_response(chance, data) if kind > 5 and method.endswith("/Predict") else mutated_bytes(chance, data)

    class Handler(grpc.GenericRpcHandler):
        def service(self, details):
            return grpc.unary_unary_rpc_method_handler(lambda request, context: answer(details.method, request, context))

    server = grpc.server(futures.ThreadPoolExecutor(16))
    server.add_generic_rpc_handlers([Handler()])
    url = f"grpc://127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
    server.start()
    outcomes, slowest, count = Counter(), 0, size(40, full=1000)
    with Client(url, model="toy", retries=0, max_answer_bytes=LIMIT) as client:
        for number in range(count):
            turn["number"], client.timeout = number, TIMEOUT
            name, (call, kind) = list(CALLS.items())[number % len(CALLS)]
            result, seconds = outcome(call, client)
            if isinstance(result, ServingError):
                check_message(result)
            else:
                assert fits(result, kind), f"number {number}, {name}: {result!r:.300}"
            outcomes[type(result).__name__ if isinstance(result, Exception) else "right answers"] += 1
            slowest = max(slowest, seconds)
            turn["number"], client.timeout = None, HUNG
            assert fits(outcome(call, client)[0], kind), f"number {number}, {name}"
            ending.set()
            ending.clear()
    server.stop(None)
    assert set(outcomes) == {"ServingError", "right answers"}
    seen(f"{count:,} answers: {dict(outcomes)}; the slowest call took {slowest:.2f} s of a timeout of {TIMEOUT} s")
