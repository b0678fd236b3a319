"""The JSON of TensorFlow Serving's REST interface, as its json_tensor.cc reads and writes it."""

import base64
import json
import math
from collections.abc import Mapping

import numpy as np

from keras_transformer.serving.runtime import Signature, TensorInfo

NAMES = {"float32": "float", "float64": "double"}  # Types by the names that the server uses for them.
INTEGERS = {"int8": 2**7, "int16": 2**15, "int32": 2**31, "int64": 2**63}
LARGEST_EXACT = {"float32": 2**24 - 1, "float64": 2**53 - 1}
INVALID = 3  # The code of a request that is not as it should be.
MOST_DIMENSIONS = 32  # What every version of numpy can hold.


class RefusalError(Exception):
    """What the server answers instead of a result; `code` is one of TensorFlow's."""

    def __init__(self, message: str, code: int = INVALID):
        super().__init__(message)
        self.code = code


def read_request(body: bytes, signatures: Mapping[str, Signature]) -> tuple[str, dict[str, np.ndarray], bool]:
    """Returns the name of the signature, an array for each of its inputs, and whether the request is in row form."""
    request = parse(body)
    name = request.get("signature_name", "serving_default") or "serving_default"
    if not isinstance(name, str):
        raise RefusalError(
            f"JSON Value: {shown(request)} not formatted correctly. 'signature_name' key must be a string value."
        )
    if name not in signatures:
        raise RefusalError(f'Serving signature name: "{name}" not found in signature def')
    infos = signatures[name].inputs
    if "instances" in request and "inputs" in request:
        expected = "Not formatted correctly expecting only one of 'inputs' or 'instances' keys to exist "
        raise RefusalError(f"JSON Value: {shown(request)} {expected}")
    if "instances" in request:
        return name, read_rows(request, infos), True
    if "inputs" in request:
        return name, read_columns(request["inputs"], infos), False
    raise RefusalError("Missing 'inputs' or 'instances' key")


def parse(body: bytes) -> dict:
    """Reads JSON; bytes that are not UTF-8 pass through, as the server does not look."""
    if not body:
        raise RefusalError("JSON Parse error: The document is empty")
    try:
        request = json.loads(body.decode("utf-8", "surrogateescape"))
    except (ValueError, RecursionError) as error:
        raise RefusalError(f"JSON Parse error: {error}") from None
    if not isinstance(request, dict):
        raise RefusalError(f"JSON Value: {shown(request)} Is not object")
    return request


def read_rows(request: dict, infos: Mapping[str, TensorInfo]) -> dict[str, np.ndarray]:
    """Reads the row form: a value, or an object with all inputs, for each item of the batch."""
    rows = request["instances"]
    if not isinstance(rows, list):
        raise RefusalError(f"JSON Value: {shown(request)} Excepting 'instances' to be an list/array")
    if not rows:
        raise RefusalError(f"JSON Value: {shown(request)} No values in 'instances' array")
    if not isinstance(rows[0], dict) and len(infos) > 1:
        raise RefusalError(
            "instances is a plain list, but expecting list of objects as multiple input tensors required as per tensorinfo_map"
        )
    named = is_object(rows[0])
    items = {name: [] for name in infos}
    for index, row in enumerate(rows):
        if is_object(row) != named:
            kinds = "object but got list" if named else "value/list but got object"
            raise RefusalError(f"Expecting {kinds} at item {index} of input list")
        add_row(index, row if named else {next(iter(infos)): row}, infos, items, named)
    return {name: np.stack(values) for name, values in items.items()}


def add_row(index: int, row: dict, infos: Mapping[str, TensorInfo], items: dict[str, list], named: bool):
    """Adds the values of a row to those of the rows before."""
    for name, value in row.items():
        key = f" key: {name}" if named else ""
        try:
            if name not in infos:
                raise RefusalError(f"JSON object: does not have named input: {name}")
            array = read_tensor(value, infos[name].dtype)
            if items[name] and items[name][0].shape != array.shape:
                raise RefusalError(f"Expecting tensor size: {items[name][0].size} but got: {array.size}")
        except RefusalError as error:
            raise RefusalError(f"Failed to process element: {index}{key} of 'instances' list. Error: {error}") from None
        items[name].append(array)
    if set(row) != set(infos):
        keys = ",".join(sorted(infos))
        shown_row = f"JSON object: {shown(row)} must only have keys: {keys}"
        raise RefusalError(f"Failed to process element: {index} of 'instances' list. {shown_row}")


def read_columns(inputs: object, infos: Mapping[str, TensorInfo]) -> dict[str, np.ndarray]:
    """Reads the column form: a list with the whole batch for each input."""
    if not is_object(inputs):
        if len(infos) > 1:
            raise RefusalError(
                "inputs is a plain value/list, but expecting an object as multiple input tensors required as per tensorinfo_map"
            )
        inputs = {next(iter(infos)): inputs}
    for name in infos:
        if name not in inputs:
            raise RefusalError(f"Missing named input: {name} in 'inputs' object.")
    return {name: read_tensor(inputs[name], info.dtype) for name, info in infos.items()}


def is_object(value: object) -> bool:
    """Tells an object with names from one that stands for bytes."""
    return isinstance(value, dict) and not is_base64(value)


def is_base64(value: object) -> bool:
    """Tells whether an object stands for bytes."""
    return isinstance(value, dict) and list(value) == ["b64"] and isinstance(value["b64"], str)


def read_tensor(value: object, dtype: str) -> np.ndarray:
    """Reads nested lists, or a single value."""
    shape, first = [], value
    while isinstance(first, list):
        shape.append(len(first))
        first = first[0] if first else None
    if len(shape) > MOST_DIMENSIONS:
        raise RefusalError(f"Encountered list at unexpected level: {len(shape)} expected < {MOST_DIMENSIONS}")
    leaves = []
    collect(value, shape, 0, dtype, leaves)
    array = np.empty(len(leaves), dtype=object)
    array[:] = leaves
    return array.reshape(shape) if dtype == "string" else array.reshape(shape).astype(dtype)


def collect(value: object, shape: list[int], level: int, dtype: str, leaves: list):
    """Adds the values of nested lists that must have a shape."""
    if not isinstance(value, list):
        if level != len(shape):
            place = f"found at incorrect level: {level + 1} in the JSON DOM. Expected at level: {len(shape)}"
            raise RefusalError(f"JSON Value: {shown(value)} {place}")
        leaves.append(read_value(value, dtype))
        return
    if level >= len(shape):
        raise RefusalError(f"Encountered list at unexpected level: {level} expected < {len(shape)}")
    if len(value) != shape[level]:
        raise RefusalError(f"Encountered list at unexpected size: {len(value)} at level: {level} expected size: {shape[level]}")
    for item in value:
        collect(item, shape, level + 1, dtype, leaves)


def read_value(value: object, dtype: str) -> bytes | bool | int | float:
    """Reads a single value, which must be of the type: no number is converted with a loss."""
    if dtype == "string" and isinstance(value, dict):
        return read_base64(value)
    if dtype == "string" and isinstance(value, str):
        try:
            return value.encode("utf-8", "surrogateescape")
        except UnicodeEncodeError:
            raise RefusalError("JSON Parse error: The surrogate pair in string is invalid.") from None
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if dtype == "bool" and isinstance(value, bool):
        return value
    if dtype in INTEGERS and is_number and isinstance(value, int) and -INTEGERS[dtype] <= value < INTEGERS[dtype]:
        return value
    if dtype in LARGEST_EXACT and is_number:
        if is_exact(value, dtype):
            return value
        raise RefusalError(f"Cannot convert JSON value: {shown(value)} to {NAMES[dtype]} without loss of precision.")
    raise RefusalError(f"JSON Value: {shown(value)} Type: {kind(value)} is not of expected type: {NAMES.get(dtype, dtype)}")


def is_exact(value: int | float, dtype: str) -> bool:
    """Tells whether a type of floating point has room for a number."""
    if isinstance(value, int):
        return abs(value) <= LARGEST_EXACT[dtype]
    return not math.isfinite(value) or abs(value) <= np.finfo(dtype).max


def read_base64(value: dict) -> bytes:
    """Reads bytes from `{"b64": "..."}`."""
    if not is_base64(value):
        raise RefusalError(f"JSON Value: {shown(value)} not formatted correctly for base64 data")
    try:
        return base64.b64decode(value["b64"], validate=True)
    except ValueError:
        raise RefusalError("Unable to base64 decode") from None


def shown(value: object) -> str:
    """Returns JSON as messages show it."""
    return json.dumps(value, ensure_ascii=False, indent=4)


def kind(value: object) -> str:
    """Returns the name that messages have for the type of a JSON value."""
    kinds = {bool: str(value), type(None): "Null", dict: "Object", list: "Array", str: "String"}
    return kinds.get(type(value), "Number")


def write_response(outputs: Mapping[str, np.ndarray], in_rows: bool) -> bytes:
    """Returns the server's answer: an object a row, or a list a column; bare values if there is only one output."""
    if not in_rows:
        columns = {name: write_array(array, name) for name, array in sorted(outputs.items())}
        return b'{"outputs": %s}' % (write_object(columns) if len(columns) > 1 else next(iter(columns.values())))
    rows = []
    for index in range(batch_size(outputs)):
        row = {name: write_array(array[index], name) for name, array in sorted(outputs.items())}
        rows.append(write_object(row) if len(row) > 1 else next(iter(row.values())))
    return b'{"predictions": [%s]}' % b", ".join(rows)


def batch_size(outputs: Mapping[str, np.ndarray]) -> int:
    """Returns the number of rows, which all outputs must have."""
    size = 0
    for name, array in sorted(outputs.items()):
        if array.ndim == 0:
            raise RefusalError(f"Tensor name: {name} has no shape information ")
        if len(array) < 1:
            raise RefusalError(f"Tensor name: {name} has invalid batch size: {len(array)}")
        if size not in (0, len(array)):
            raise RefusalError(f"Tensor name: {name} has inconsistent batch size: {len(array)} expecting: {size}")
        size = len(array)
    return size


def write_object(items: Mapping[str, bytes]) -> bytes:
    """Writes an object whose values are written already."""
    return b"{%s}" % b", ".join(json.dumps(name).encode() + b": " + value for name, value in items.items())


def write_array(array: object, name: str) -> bytes:
    """Writes nested lists, or a single value, of the output of this name."""
    if isinstance(array, np.ndarray) and array.ndim:
        return b"[%s]" % b", ".join(write_array(item, name) for item in array)
    value = array.item() if isinstance(array, np.ndarray) else array
    if isinstance(value, bytes):
        return write_string(value, as_base64=name.endswith("_bytes"))
    if isinstance(value, np.bool_ | bool):
        return b"true" if value else b"false"
    if np.asarray(array).dtype.kind == "f":
        return write_decimal(np.float32(value)).encode()
    return str(int(value)).encode()


def write_string(value: bytes, as_base64: bool) -> bytes:
    """Writes bytes as they are, or in base 64."""
    if as_base64:
        return b'{"b64": "%s"}' % base64.b64encode(value)
    text = value.decode("utf-8", "surrogateescape")
    return json.dumps(text, ensure_ascii=False).encode("utf-8", "surrogateescape")


def write_decimal(value: np.float32) -> str:
    """Writes six digits if they are enough, else nine; what is not a number is written bare, which is not JSON."""
    if not np.isfinite(value):
        return "NaN" if np.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    text = f"{value:.6g}"
    if np.float32(text) != value:
        text = f"{value:.9g}"
    return text if "." in text or "e" in text else text + ".0"
