"""Runs a SavedModel in TensorFlow's C runtime, without TensorFlow's Python package and without this one.

This is what TensorFlow Serving does with a model once a request has been read: load it with the tag `serve` and run a
signature through a session. It is not TensorFlow Serving. The file needs numpy and the folder in which the wheels
`tensorflow` and `tensorflow-text` are installed, and runs by itself:

    python -I runtime.py SAVED_MODEL             # prints the signatures
    python -I runtime.py SAVED_MODEL < requests  # answers lines: {"signature": "serving_default", "inputs": {"text": ["..."]}}

A line that cannot be answered gets {"error": "..."}, and the others are answered all the same; the exit code then is 1.
"""

import argparse
import ctypes
import importlib.util
import json
import os
import struct
import sys
import threading
from collections.abc import Iterator, Mapping
from ctypes import POINTER, byref, c_char_p, c_int, c_int64, c_size_t, c_void_p
from dataclasses import dataclass
from pathlib import Path

import numpy as np

# Numbers of TensorFlow's DataType.
DTYPES = {
    1: "float32", 2: "float64", 3: "int32", 4: "uint8", 5: "int16", 6: "int8", 7: "string", 9: "int64", 10: "bool",
    17: "uint16", 19: "float16", 22: "uint32", 23: "uint64",
}  # fmt: skip
NUMBERS = {name: number for number, name in DTYPES.items()}
STRING_BYTES = 24  # What a string takes in a tensor, beside the text of a long one.
OP_LIBRARIES = ("_sentencepiece_tokenizer",)
# Fields of TensorFlow's RewriterConfig, with the values that `session.config` of an export has.
REWRITING = {
    1: 2,  # layout_optimizer: OFF
    3: 2,  # constant_folding: OFF
    4: 1,  # memory_optimization: NO_MEM_OPT
    7: 2,  # arithmetic_optimization: OFF
    9: 2,  # loop_optimization: OFF
    12: 1,  # meta_optimizer_iterations: ONE
    22: 2,  # implementation_selector: OFF
    24: 2,  # common_subgraph_elimination: OFF
    32: 1,  # disable_tfg_optimizer: true
}


class TensorFlowError(RuntimeError):
    """What TensorFlow answered instead of a result; `code` is its status code, such as 3 for an invalid argument."""

    def __init__(self, code: int, message: str):
        super().__init__(message)
        self.code = code


@dataclass(frozen=True)
class TensorInfo:
    """An input or output of a signature; `shape` is `None` if even the rank is unknown, and has -1 for unknown sizes."""

    tensor: str
    dtype: str
    shape: tuple[int, ...] | None


@dataclass(frozen=True)
class Signature:
    """The inputs and outputs of a signature by name."""

    inputs: Mapping[str, TensorInfo]
    outputs: Mapping[str, TensorInfo]


class SavedModelSession:
    """A SavedModel, loaded and ready to run. May be called by any number of threads at once.

    Args:
        folder: The SavedModel: what holds `saved_model.pb`.
        intra_op_threads: Threads that one operation may use. TensorFlow keeps one pool for all of them in a process, and
            the first session decides.
        inter_op_threads: Threads on which the operations of this session run.
        packages: The folder in which tensorflow and tensorflow-text are installed. Defaults to where Python finds them. A
            process can use only one.
        op_libraries: Names of tensorflow-text's op libraries to load, those that SentencePiece needs by default.

    Example:

        with SavedModelSession("saved_models/en-de/1") as session:
            session.run("serving_default", {"text": ["a house"]})["translation"]  # array([b'ein Haus'], dtype=object)
    """

    def __init__(
        self,
        folder: str | os.PathLike,
        intra_op_threads: int | None = None,
        inter_op_threads: int | None = None,
        packages: str | os.PathLike | None = None,
        op_libraries: tuple[str, ...] = OP_LIBRARIES,
    ):
        if not (Path(folder) / "saved_model.pb").is_file():
            raise ValueError(f"{folder} is no SavedModel: it has no saved_model.pb. Give the folder of one version")
        self._library = load_library(packages, op_libraries)
        self._graph = self._library.TF_NewGraph()
        try:
            self._session, meta_graph = self._load(folder, config_proto(intra_op_threads, inter_op_threads))
        except TensorFlowError:
            self._library.TF_DeleteGraph(self._graph)
            raise
        self.signatures = read_signatures(meta_graph)
        self._places = {name: (self._find(one.inputs), self._find(one.outputs)) for name, one in self.signatures.items()}
        self._idle = threading.Condition()
        self._running = 0

    def _load(self, folder, config: bytes) -> tuple[c_void_p, bytes]:
        library = self._library
        options, buffer = library.TF_NewSessionOptions(), library.TF_NewBuffer()
        try:
            call(library, library.TF_SetConfig, options, config, len(config))
            tags = (c_char_p * 1)(b"serve")
            session = call(
                library, library.TF_LoadSessionFromSavedModel, options, None, os.fsencode(folder), tags, 1, self._graph, buffer
            )
            return session, ctypes.string_at(buffer.contents.data, buffer.contents.length)
        finally:
            library.TF_DeleteBuffer(buffer)
            library.TF_DeleteSessionOptions(options)

    def run(self, signature: str, inputs: Mapping[str, np.ndarray], timeout: float | None = None) -> dict[str, np.ndarray]:
        """Runs a signature.

        Args:
            signature: Its name, such as `"serving_default"`.
            inputs: An array, or what makes one, for each input. Strings are `str` or `bytes`.
            timeout: Seconds after which TensorFlow gives up, with code 4.

        Returns:
            An array for each output. Strings are `bytes` in an array of objects.
        """
        if signature not in self.signatures:
            raise ValueError(f"The model has the signatures {sorted(self.signatures)}. Received: signature={signature!r}")
        arrays = check_inputs(signature, self.signatures[signature].inputs, inputs)
        with self._idle:
            session = self._session
            if session is None:
                raise ValueError("The session is closed")
            self._running += 1
        try:
            return self._run(session, signature, arrays, run_options(timeout))
        finally:
            with self._idle:
                self._running -= 1
                self._idle.notify_all()

    def _run(self, session: int, name: str, arrays: dict[str, np.ndarray], options: bytes) -> dict[str, np.ndarray]:
        library, alive = self._library, []  # `alive` keeps the text of strings until the run is over.
        signature, (inputs, outputs) = self.signatures[name], self._places[name]
        tensors, results = (c_void_p * len(inputs))(), (c_void_p * len(outputs))()
        buffer = TFBuffer(ctypes.cast(options, c_void_p), len(options), None)
        try:
            for index, (key, info) in enumerate(signature.inputs.items()):
                tensors[index] = make_tensor(library, arrays[key], info.dtype, alive)
            call(
                library, library.TF_SessionRun, session, byref(buffer), inputs, tensors, len(inputs), outputs, results,
                len(outputs), None, 0, None,
            )  # fmt: skip
            return {key: read_tensor(library, results[index]) for index, key in enumerate(signature.outputs)}
        finally:
            for tensor in filter(None, (*results, *tensors)):
                library.TF_DeleteTensor(tensor)

    def _find(self, infos: Mapping[str, TensorInfo]):
        """Finds where tensors come from in the graph."""
        places = []
        for info in infos.values():
            name, _, index = info.tensor.partition(":")
            places.append(TFOutput(self._library.TF_GraphOperationByName(self._graph, name.encode()), int(index or 0)))
        return (TFOutput * len(places))(*places)

    def close(self):
        """Frees the model, once the runs that are under way have ended."""
        with self._idle:
            session, self._session = self._session, None
            self._idle.wait_for(lambda: not self._running)
        if session is not None:
            call(self._library, self._library.TF_DeleteSession, session)
            self._library.TF_DeleteGraph(self._graph)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.close()


# The library.


class TFOutput(ctypes.Structure):
    """TF_Output: an output of an operation."""

    _fields_ = [("operation", c_void_p), ("index", c_int)]


class TFBuffer(ctypes.Structure):
    """TF_Buffer: bytes that TensorFlow owns."""

    _fields_ = [("data", c_void_p), ("length", c_size_t), ("deallocator", c_void_p)]


TENSORS = (POINTER(TFOutput), POINTER(c_void_p), c_int)  # Where, what, and how many.
FUNCTIONS = {  # name: result, arguments
    "TF_Version": (c_char_p, []),
    "TF_NewStatus": (c_void_p, []),
    "TF_GetCode": (c_int, [c_void_p]),
    "TF_Message": (c_char_p, [c_void_p]),
    "TF_DeleteStatus": (None, [c_void_p]),
    "TF_LoadLibrary": (c_void_p, [c_char_p, c_void_p]),
    "TF_NewGraph": (c_void_p, []),
    "TF_DeleteGraph": (None, [c_void_p]),
    "TF_NewBuffer": (POINTER(TFBuffer), []),
    "TF_DeleteBuffer": (None, [POINTER(TFBuffer)]),
    "TF_NewSessionOptions": (c_void_p, []),
    "TF_DeleteSessionOptions": (None, [c_void_p]),
    "TF_SetConfig": (None, [c_void_p, c_char_p, c_size_t, c_void_p]),
    "TF_LoadSessionFromSavedModel": (
        c_void_p,
        [c_void_p, c_void_p, c_char_p, POINTER(c_char_p), c_int, c_void_p, POINTER(TFBuffer), c_void_p],
    ),
    "TF_DeleteSession": (None, [c_void_p, c_void_p]),
    "TF_GraphOperationByName": (c_void_p, [c_void_p, c_char_p]),
    "TF_SessionRun": (
        None,
        [c_void_p, POINTER(TFBuffer), *TENSORS, *TENSORS, c_void_p, c_int, c_void_p, c_void_p],
    ),
    "TF_AllocateTensor": (c_void_p, [c_int, POINTER(c_int64), c_int, c_size_t]),
    "TF_DeleteTensor": (None, [c_void_p]),
    "TF_TensorType": (c_int, [c_void_p]),
    "TF_NumDims": (c_int, [c_void_p]),
    "TF_Dim": (c_int64, [c_void_p, c_int]),
    "TF_TensorData": (c_void_p, [c_void_p]),
    "TF_TensorByteSize": (c_size_t, [c_void_p]),
}
LOADED = {}  # The library by the folder it came from.
LOADING = threading.Lock()


def load_library(packages: str | os.PathLike | None = None, op_libraries: tuple[str, ...] = OP_LIBRARIES) -> ctypes.CDLL:
    """Loads TensorFlow's shared library and op libraries of tensorflow-text.

    As in the server, XLA refuses to compile, unless Python's TensorFlow has been imported by the process.
    """
    tensorflow = package_folder("tensorflow", packages)
    with LOADING:
        if tensorflow not in LOADED:
            LOADED[tensorflow] = (open_library(tensorflow), set())
        library, ops = LOADED[tensorflow]
        for name in op_libraries:
            if name not in ops:
                path = package_folder("tensorflow_text", packages) / "python" / "ops" / f"{name}.so"
                call(library, library.TF_LoadLibrary, os.fsencode(path))
                ops.add(name)
    return library


def package_folder(name: str, packages: str | os.PathLike | None) -> Path:
    """Finds a package without importing it."""
    if packages is not None:
        folder = Path(packages).resolve() / name
    else:
        spec = importlib.util.find_spec(name)
        folder = Path(spec.origin).resolve().parent if spec else None
    if folder is None or not folder.is_dir():
        raise ValueError(
            f"The package {name} is not installed in {packages or sys.prefix}: pip install {name.replace('_', '-')}"
        )
    return folder


def open_library(tensorflow: Path) -> ctypes.CDLL:
    """Opens the library and declares the functions that are used here."""
    if LOADED:
        raise ValueError(f"This process runs the TensorFlow of {next(iter(LOADED))} already: use another for {tensorflow}")
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    files = {}
    for part in ("framework", "cc"):  # The first is what the second and the op libraries depend on.
        found = sorted(tensorflow.glob(f"libtensorflow_{part}.*"), key=lambda path: len(path.name))
        if not found:
            raise ValueError(f"{tensorflow} has no libtensorflow_{part}: the C runtime comes with tensorflow 2.18 and later")
        files[part] = ctypes.CDLL(str(found[0]), mode=ctypes.RTLD_GLOBAL)
    library = files["cc"]
    for name, (result, arguments) in FUNCTIONS.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    if "tensorflow" not in sys.modules:  # It is off for the whole process, and a Python TensorFlow may want it.
        library["_ZN10tensorflow21DisableXlaCompilationEv"]()
    return library


def call(library: ctypes.CDLL, function, *arguments):
    """Calls a function whose last argument is a status, and raises what it says."""
    status = library.TF_NewStatus()
    try:
        result = function(*arguments, status)
        if library.TF_GetCode(status):
            raise TensorFlowError(library.TF_GetCode(status), library.TF_Message(status).decode(errors="replace"))
        return result
    finally:
        library.TF_DeleteStatus(status)


# Tensors.


def check_inputs(signature: str, infos: Mapping[str, TensorInfo], inputs: Mapping) -> dict[str, np.ndarray]:
    """Makes arrays of the right types."""
    if set(inputs) != set(infos):
        raise ValueError(f"The signature {signature!r} takes the inputs {sorted(infos)}. Received: {sorted(inputs)}")
    return {name: as_array(name, inputs[name], info.dtype) for name, info in infos.items()}


def as_array(name: str, value, dtype: str) -> np.ndarray:
    """Makes an array of a type that must hold the values."""
    array = np.array(value, dtype=object) if dtype == "string" else np.asarray(value)
    if dtype == "string":
        fits = all(isinstance(text, str | bytes) for text in array.ravel().tolist())
    else:
        fits = not array.size or np.can_cast(array.dtype, dtype, "same_kind")
    if not fits:
        raise ValueError(f"The input {name!r} is of type {dtype}. Received: {name}={value!r}")
    return array if dtype == "string" else np.asarray(array, dtype=dtype, order="C")


def make_tensor(library: ctypes.CDLL, array: np.ndarray, dtype: str, alive: list) -> int:
    """Copies an array to a tensor. The text of strings stays where it is, in what is added to `alive`."""
    data = string_views(array, alive) if dtype == "string" else array
    shape = (c_int64 * array.ndim)(*array.shape)
    tensor = library.TF_AllocateTensor(NUMBERS[dtype], shape, array.ndim, data.nbytes)
    ctypes.memmove(library.TF_TensorData(tensor), data.ctypes.data, data.nbytes)
    return tensor


def string_views(array: np.ndarray, alive: list) -> np.ndarray:
    """Describes strings that lie one after the other in a buffer: size and kind, address, unused."""
    strings = [text.encode() if isinstance(text, str) else text for text in array.ravel().tolist()]
    text = np.frombuffer(b"\0".join([*strings, b""]) or b"\0", np.uint8)  # Some kernels read up to a zero.
    alive.append(text)
    sizes = np.array([len(string) for string in strings], np.uint64)
    views = np.zeros((len(strings), 3), np.uint64)
    views[:, 0] = sizes << np.uint64(2) | np.uint64(3)  # The kind is in the lowest two bits; 3 is a view.
    views[:, 1] = text.ctypes.data + np.cumsum(sizes) - sizes + np.arange(len(strings), dtype=np.uint64)
    return views


def read_tensor(library: ctypes.CDLL, tensor: int) -> np.ndarray:
    """Copies a tensor to an array."""
    shape = [library.TF_Dim(tensor, axis) for axis in range(library.TF_NumDims(tensor))]
    address, size = library.TF_TensorData(tensor), library.TF_TensorByteSize(tensor)
    dtype = DTYPES.get(library.TF_TensorType(tensor))
    if dtype is None:
        raise ValueError(f"Tensors of TensorFlow's type {library.TF_TensorType(tensor)} can't be read")
    data = ctypes.string_at(address, size) if size else b""
    if dtype != "string":
        return np.frombuffer(data, dtype).reshape(shape).copy()
    strings = np.empty(len(data) // STRING_BYTES, dtype=object)
    for index in range(len(strings)):
        strings[index] = read_string(data, index * STRING_BYTES, address)
    return strings.reshape(shape)


def read_string(data: bytes, start: int, address: int) -> bytes:
    """Reads one of the four kinds of strings: in place, on the heap, at an offset, or a view."""
    kind = data[start] & 3
    if kind == 0:
        return data[start + 1 : start + 1 + (data[start] >> 2)]
    if kind == 2:
        size, offset = struct.unpack_from("<II", data, start)
        return ctypes.string_at(address + start + offset, size >> 2)
    size, second, third = struct.unpack_from("<QQQ", data, start)
    return ctypes.string_at(third if kind == 1 else second, size >> 2)


# Protocol buffers.


def config_proto(intra_op_threads: int | None, inter_op_threads: int | None) -> bytes:
    """Writes a ConfigProto: numbers of threads, no compilation by XLA, and of a graph's rewriting only what is of use."""
    threads = field(2, intra_op_threads) if intra_op_threads else b""
    if inter_op_threads:
        threads += field(5, inter_op_threads) + field(9, 1)  # 9: a pool for this session alone.
    compiling = field(3, field(5, -1))  # optimizer_options.global_jit_level: OFF
    rewriting = field(10, b"".join(field(*option) for option in REWRITING.items()))
    return threads + field(10, compiling + rewriting)  # graph_options


def run_options(timeout: float | None) -> bytes:
    """Writes RunOptions: how many milliseconds a run may take."""
    return field(2, max(1, int(1000 * timeout))) if timeout is not None else b""


def field(number: int, value: int | bytes) -> bytes:
    """Writes a field of a message."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value & (1 << 64) - 1)
    return varint(number << 3 | 2) + varint(len(value)) + value


def varint(value: int) -> bytes:
    """Writes a number seven bits at a time, the lowest first."""
    result = bytearray()
    while value > 127:
        result.append(value & 127 | 128)
        value >>= 7
    return bytes([*result, value])


def read_varint(data: memoryview, at: int) -> tuple[int, int]:
    """Reads a number and returns it with the place behind it."""
    value = shift = 0
    while data[at] > 127:
        value |= (data[at] & 127) << shift
        at, shift = at + 1, shift + 7
    return value | data[at] << shift, at + 1


def fields(data: memoryview) -> Iterator[tuple[int, int | memoryview]]:
    """Yields the fields of a message: number and value."""
    at = 0
    while at < len(data):
        key, at = read_varint(data, at)
        if key & 7 == 0:
            value, at = read_varint(data, at)
        else:
            size, at = (8, at) if key & 7 == 1 else (4, at) if key & 7 == 5 else read_varint(data, at)
            value, at = data[at : at + size], at + size
        yield key >> 3, value


def entry(data: memoryview) -> tuple[str, memoryview]:
    """Reads an entry of a map whose keys are strings."""
    found = {1: b"", 2: memoryview(b""), **dict(fields(data))}
    return bytes(found[1]).decode(), found[2]


def read_signatures(meta_graph: bytes) -> dict[str, Signature]:
    """Finds the signatures of a MetaGraphDef."""
    entries = [entry(value) for number, value in fields(memoryview(meta_graph)) if number == 5]
    return {name: read_signature(data) for name, data in sorted(entries) if not name.startswith("__")}


def read_signature(data: memoryview) -> Signature:
    """Reads a SignatureDef."""
    found = {1: {}, 2: {}}
    for number, value in fields(data):
        if number in found:
            name, info = entry(value)
            found[number][name] = read_tensor_info(info)
    return Signature(*(dict(sorted(infos.items())) for infos in found.values()))


def read_tensor_info(data: memoryview) -> TensorInfo:
    """Reads a TensorInfo."""
    found = dict(fields(data))
    sizes, known = [], True
    for number, value in fields(found.get(3, memoryview(b""))):
        if number == 2:
            size = dict(fields(value)).get(1, 0)
            sizes.append(size - (1 << 64) if size >> 63 else size)
        elif number == 3:
            known = not value
    number = found.get(2, 0)
    return TensorInfo(bytes(found.get(1, b"")).decode(), DTYPES.get(number, f"type {number}"), tuple(sizes) if known else None)


# The command line.


def main():
    """Prints signatures, or answers requests."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", help="a SavedModel")
    parser.add_argument("--packages", help="the folder in which tensorflow and tensorflow-text are installed")
    parser.add_argument("--intra-op-threads", type=int)
    parser.add_argument("--inter-op-threads", type=int)
    options = parser.parse_args()
    with SavedModelSession(options.folder, options.intra_op_threads, options.inter_op_threads, options.packages) as session:
        if sys.stdin.isatty():
            print_signatures(session.signatures)
            return
        errors = []
        for line in sys.stdin.buffer:
            try:
                found = answer(session, line)
            except (ValueError, TypeError, RecursionError, TensorFlowError) as error:
                found = {"error": str(error)}
                errors.append(error)
            print(json.dumps(found), flush=True)
        if errors:
            sys.exit(f"error: {len(errors)} lines could not be answered, the first because: {errors[0]}")


def answer(session: SavedModelSession, line: bytes) -> dict:
    """Answers a request in JSON with the outputs of its signature, in lists."""
    request = json.loads(line)
    if not isinstance(request, dict) or not isinstance(request.get("inputs"), dict):
        raise ValueError(f'A request is an object such as {{"inputs": {{"text": ["..."]}}}}. Received: {line!r:.200}')
    outputs = session.run(request.get("signature", "serving_default"), request["inputs"])
    return {name: as_json(array.tolist()) for name, array in outputs.items()}


def print_signatures(signatures: Mapping[str, Signature]):
    """Prints each signature with its inputs and outputs."""
    for name, signature in signatures.items():
        print(name)
        for arrow, infos in (("<-", signature.inputs), ("->", signature.outputs)):
            for label, info in infos.items():
                print(f"  {arrow} {label}: {info.dtype} {'?' if info.shape is None else list(info.shape)}")


def as_json(value):
    """Turns bytes into text, in lists of any depth."""
    if isinstance(value, list):
        return [as_json(item) for item in value]
    return value.decode(errors="replace") if isinstance(value, bytes) else value


if __name__ == "__main__":
    main()
