"""TensorFlow Serving's gRPC interface, through the package tensorflow-serving-api."""

import math
import urllib.parse
from collections.abc import Callable, Mapping

from keras_transformer.serving.answers import ModelVersion, model_versions, signatures
from keras_transformer.serving.errors import ServingError, misdirection, refusal, silence, too_long, too_slow

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
# The types of outputs: how their values lie in bytes, and the field that has them otherwise.
KINDS = {
    "DT_FLOAT": ("<f4", "float_val"),
    "DT_INT32": ("<i4", "int_val"),
    "DT_INT64": ("<i8", "int64_val"),
    "DT_BOOL": ("?", "bool_val"),
}


class GrpcConnection:
    """Asks a model of a server over gRPC, once. Has the methods of `RestConnection`, and returns the same.

    Args:
        url: Where the server is, such as `"grpc://localhost:8500"`.
        model: Name of the model.
        version, label: Which version to ask; the newest if both are `None`.
        max_answer_bytes: Most bytes of an answer.
    """

    def __init__(self, url: str, model: str, version: int | None, label: str | None, max_answer_bytes: int):
        self.url = url.rstrip("/")
        self.max_answer_bytes = max_answer_bytes
        self._model, self._version, self._label = model, version, label
        self._grpc, self._api = import_grpc()
        address = urllib.parse.urlsplit(self.url).netloc
        limit = ("grpc.max_receive_message_length", min(max_answer_bytes, 2**31 - 1))
        self._channel = self._grpc.insecure_channel(address, [limit])
        self._predictions = self._api["prediction_service_pb2_grpc"].PredictionServiceStub(self._channel)
        self._models = self._api["model_service_pb2_grpc"].ModelServiceStub(self._channel)

    def predict(self, signature: str, inputs: Mapping[str, list], read: Callable[[dict], list], timeout: float) -> list:
        """Runs a signature on lists of values, one for each row, and returns what `read` makes of the answer."""
        request = self._api["predict_pb2"].PredictRequest(model_spec=self._spec(signature_name=signature))
        for name, values in inputs.items():
            fill(request.inputs[name], name, values)

        def read_tensors(found):
            if sum(map(value_count, found.outputs.values())) > self.max_answer_bytes // 4:  # (A float32 has four bytes.)
                raise ValueError("more values than fit into the longest answer")
            return read({"outputs": {name: read_tensor(tensor) for name, tensor in found.outputs.items()}})

        return self._ask(self._predictions.Predict, request, read_tensors, timeout)

    def status(self, timeout: float, every_version: bool = False) -> list[ModelVersion]:
        """Returns the versions that the server knows, or the chosen one."""
        request = self._api["get_model_status_pb2"].GetModelStatusRequest(model_spec=self._spec(every_version))
        return self._ask(self._models.GetModelStatus, request, lambda found: model_versions(as_dictionary(found)), timeout)

    def metadata(self, timeout: float) -> dict[str, dict]:
        """Returns the signatures."""
        api = self._api["get_model_metadata_pb2"]
        request = api.GetModelMetadataRequest(model_spec=self._spec(), metadata_field=["signature_def"])

        def read_signatures(found):
            described = api.SignatureDefMap.FromString(found.metadata["signature_def"].value)
            return signatures({"metadata": {"signature_def": as_dictionary(described)}})

        return self._ask(self._predictions.GetModelMetadata, request, read_signatures, timeout)

    def _spec(self, every_version: bool = False, **options):
        """Names the model and the chosen version."""
        spec = self._api["model_pb2"].ModelSpec(name=self._model, **options)
        if self._version is not None and not every_version:
            spec.version.value = self._version
        if self._label is not None and not every_version:
            spec.version_label = self._label
        return spec

    def _ask(self, method, request, read: Callable, timeout: float):
        from google.protobuf.message import DecodeError

        address = f"{self.url}, model {self._model}"
        try:
            found = method(request, timeout)
        except self._grpc.RpcError as error:
            code, details = error.code().name, error.details() or ""
        else:
            try:
                return read(found)
            except (ValueError, MemoryError, DecodeError) as error:
                raise misdirection(address, f"{type(found).__name__} of {found.ByteSize()} bytes", error) from None
        if code == "DEADLINE_EXCEEDED":
            raise too_slow(address, timeout)
        if code == "RESOURCE_EXHAUSTED" and "larger than max" in details:
            raise too_long(address, self.max_answer_bytes)
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


def value_count(tensor) -> int:
    """Counts the values that a TensorProto stands for, which may be more than it has, and the lists around them."""
    return math.prod(max(1, abs(dim.size)) for dim in tensor.tensor_shape.dim)


def read_tensor(tensor) -> list:
    """Reads a TensorProto as nested lists, or raises a `ValueError`."""
    import numpy as np
    from tensorflow.core.framework import types_pb2  # noqa: TID251

    kind = types_pb2.DataType.Name(tensor.dtype)
    shape = [dim.size for dim in tensor.tensor_shape.dim]
    if kind not in ("DT_STRING", *KINDS) or min(shape, default=0) < 0:
        raise ValueError(f"a tensor of type {kind} and shape {shape[:9]}")
    if kind == "DT_STRING":
        values = np.array([value.decode("utf-8", "replace") for value in tensor.string_val], dtype=object)
    elif tensor.tensor_content:
        values = np.frombuffer(tensor.tensor_content, KINDS[kind][0])
    else:
        values = np.array(getattr(tensor, KINDS[kind][1]))
    missing = math.prod(shape) - len(values)  # Values that repeat the last one need not be sent.
    return np.concatenate([values, np.repeat(values[-1:], missing)]).reshape(shape).tolist()


def as_dictionary(message) -> dict:
    """Turns a message into what the REST interface would send."""
    from google.protobuf.json_format import MessageToDict

    return MessageToDict(message, preserving_proto_field_name=True, always_print_fields_with_no_presence=True)
