"""TensorFlow Serving's gRPC interface, through the package tensorflow-serving-api."""

import urllib.parse
from collections.abc import Mapping

from keras_transformer.serving.errors import ServingError, refusal, silence, too_slow

# gRPC's codes as the HTTP codes that the server's REST interface gives them.
HTTP_CODES = {
    "INVALID_ARGUMENT": 400,
    "FAILED_PRECONDITION": 400,
    "OUT_OF_RANGE": 400,
    "UNAUTHENTICATED": 401,
    "PERMISSION_DENIED": 403,
    "NOT_FOUND": 404,
    "RESOURCE_EXHAUSTED": 429,
    "UNIMPLEMENTED": 501,
    "UNAVAILABLE": 503,
    "DEADLINE_EXCEEDED": 504,
}
INTEGER_INPUTS = ("beam_size", "max_length")
MAX_MESSAGE = 256 * 2**20  # Bytes. gRPC's own limit, 4 MB, is little for alignments.
SIZES = {"DT_FLOAT": "<f4", "DT_INT32": "<i4", "DT_INT64": "<i8", "DT_BOOL": "?"}
VALUES = {
    "DT_FLOAT": "float_val",
    "DT_INT32": "int_val",
    "DT_INT64": "int64_val",
    "DT_BOOL": "bool_val",
}


class GrpcConnection:
    """Asks a model of a server over gRPC, once. Has the methods of `RestConnection`, and returns the same.

    Args:
        url: Where the server is, such as `"grpc://localhost:8500"`.
        model: Name of the model.
        version, label: Which version to ask; the newest if both are `None`.
        timeout: Seconds to wait for an answer.
    """

    def __init__(self, url: str, model: str, version: int | None = None, label: str | None = None, timeout: float = 30):
        self.url = url.rstrip("/")
        self.timeout = timeout
        self._model, self._version, self._label = model, version, label
        self._grpc, self._api = import_grpc()
        address = urllib.parse.urlsplit(self.url).netloc
        limits = [("grpc.max_receive_message_length", MAX_MESSAGE), ("grpc.max_send_message_length", MAX_MESSAGE)]
        self._channel = self._grpc.insecure_channel(address, limits)
        self._predictions = self._api["prediction_service_pb2_grpc"].PredictionServiceStub(self._channel)
        self._models = self._api["model_service_pb2_grpc"].ModelServiceStub(self._channel)

    def predict(self, signature: str, inputs: Mapping[str, list]) -> dict[str, list]:
        """Runs a signature on lists of values, one for each row."""
        request = self._api["predict_pb2"].PredictRequest(model_spec=self._spec(signature_name=signature))
        for name, values in inputs.items():
            fill(request.inputs[name], name, values)
        found = self._ask(self._predictions.Predict, request)
        return {name: read(tensor) for name, tensor in found.outputs.items()}

    def status(self, every_version: bool = False) -> dict:
        """Returns the server's answer about the state of the versions."""
        request = self._api["get_model_status_pb2"].GetModelStatusRequest(model_spec=self._spec(every_version))
        return as_dictionary(self._ask(self._models.GetModelStatus, request))

    def metadata(self) -> dict:
        """Returns the server's answer about the signatures."""
        api = self._api["get_model_metadata_pb2"]
        request = api.GetModelMetadataRequest(model_spec=self._spec(), metadata_field=["signature_def"])
        found = self._ask(self._predictions.GetModelMetadata, request)
        signatures = api.SignatureDefMap()
        found.metadata["signature_def"].Unpack(signatures)
        return {"metadata": {"signature_def": as_dictionary(signatures)}}

    def _spec(self, every_version: bool = False, **options):
        """Names the model and the chosen version."""
        spec = self._api["model_pb2"].ModelSpec(name=self._model, **options)
        if self._version is not None and not every_version:
            spec.version.value = self._version
        if self._label is not None and not every_version:
            spec.version_label = self._label
        return spec

    def _ask(self, method, request):
        try:
            return method(request, self.timeout)
        except self._grpc.RpcError as error:
            code, details = error.code().name, error.details()
        address = f"{self.url}, model {self._model}"
        if code == "DEADLINE_EXCEEDED":
            raise too_slow(address, self.timeout)
        if code == "UNAVAILABLE" and "connect" in details.lower():
            raise silence(address, details)
        raise refusal(address, HTTP_CODES.get(code, 500), details)

    def close(self):
        """Closes the connection."""
        self._channel.close()


def import_grpc() -> tuple:
    """Imports gRPC and what tensorflow-serving-api generated for it."""
    try:
        import grpc
        from tensorflow_serving.apis import (
            get_model_metadata_pb2,
            get_model_status_pb2,
            model_pb2,
            model_service_pb2_grpc,
            predict_pb2,
            prediction_service_pb2_grpc,
        )
    except ImportError as error:
        raise ServingError(
            f'grpc:// needs the package tensorflow-serving-api ({error}): pip install "keras3-transformer[serving]", '
            "or use the server's REST port, http://host:8501"
        ) from error
    modules = (get_model_metadata_pb2, get_model_status_pb2, model_pb2, model_service_pb2_grpc, predict_pb2)
    return grpc, {module.__name__.split(".")[-1]: module for module in (*modules, prediction_service_pb2_grpc)}


def fill(tensor, name: str, values: list):
    """Writes a list of strings, integers or decimals to a TensorProto of the type that the server expects."""
    from tensorflow.core.framework import types_pb2  # noqa: TID251

    tensor.tensor_shape.dim.add(size=len(values))
    if values and isinstance(values[0], str):
        tensor.dtype = types_pb2.DT_STRING
        tensor.string_val.extend(value.encode() for value in values)
    elif name in INTEGER_INPUTS:
        tensor.dtype = types_pb2.DT_INT32
        tensor.int_val.extend(values)
    else:
        tensor.dtype = types_pb2.DT_FLOAT
        tensor.float_val.extend(values)


def read(tensor) -> list:
    """Reads a TensorProto as nested lists."""
    import numpy as np
    from tensorflow.core.framework import types_pb2  # noqa: TID251

    kind = types_pb2.DataType.Name(tensor.dtype)
    if kind == "DT_STRING":
        values = np.array([value.decode("utf-8", "replace") for value in tensor.string_val], dtype=object)
    elif tensor.tensor_content:
        values = np.frombuffer(tensor.tensor_content, SIZES[kind])
    else:
        values = np.array(getattr(tensor, VALUES[kind]))
    shape = [dim.size for dim in tensor.tensor_shape.dim]
    missing = int(np.prod(shape)) - len(values)  # Values that repeat the last one need not be sent.
    return np.concatenate([values, np.repeat(values[-1:], missing)]).reshape(shape).tolist()


def as_dictionary(message) -> dict:
    """Turns a message into what the REST interface would send."""
    from google.protobuf.json_format import MessageToDict

    return MessageToDict(message, preserving_proto_field_name=True)
