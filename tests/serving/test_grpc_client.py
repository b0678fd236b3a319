import importlib.util
from concurrent import futures

import pytest

import keras_transformer.serving.client as module
from keras_transformer.serving import Client, ServingError
from keras_transformer.serving.answers import Hypothesis, ModelVersion, ServedTranslation, TargetScore
from keras_transformer.serving.runtime import SavedModelSession

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
