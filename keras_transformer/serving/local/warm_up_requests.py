"""Warm-up requests as TensorFlow Serving reads them when it loads a version.

A TFRecord file of PredictionLog messages, each with a request to a signature. One that fails, fails the load.
"""

import struct
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from keras_transformer.serving.local.json_rules import RefusalError
from keras_transformer.serving.runtime import DTYPES, SavedModelSession, entry, fields, read_varint

FILE = Path("assets.extra", "tf_serving_warmup_requests")  # In the folder of a version.
MOST_REQUESTS = 1000  # A server refuses more.
DATA_LOSS = 15
FLOAT_VAL, STRING_VAL = 5, 8
INTEGER_VALS = {"int32": 7, "int64": 10, "bool": 11}


def warm_up(session: SavedModelSession, folder: Path) -> int:
    """Runs the warm-up requests of a version, if it has any, and returns how many they were."""
    path = folder / FILE
    requests = [read_request(record) for record in records(path.read_bytes())] if path.exists() else []
    if len(requests) > MOST_REQUESTS:
        raise RefusalError(f"Number of warmup records exceeds the maximum ({MOST_REQUESTS})")
    for signature, inputs in requests:
        session.run(signature, inputs)
    return len(requests)


def records(data: bytes) -> Iterator[memoryview]:
    """Yields the records of a TFRecord file: length, its checksum, content, its checksum."""
    at = 0
    while at < len(data):
        (size,) = struct.unpack_from("<Q", data, at)
        content = data[at + 12 : at + 12 + size]
        for part, place in ((data[at : at + 8], at + 8), (content, at + 12 + size)):
            if data[place : place + 4] != struct.pack("<I", masked_checksum(part)):
                raise RefusalError(f"corrupted record at {at}", DATA_LOSS)
        yield memoryview(content)
        at += 16 + size


def masked_checksum(data: bytes) -> int:
    """Returns CRC-32C as TFRecord files have it."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ CRC_OF_BYTE[(crc ^ byte) & 0xFF]
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def crc_of_byte(value: int) -> int:
    """Returns what a byte adds to a CRC-32C."""
    for _ in range(8):
        value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
    return value


CRC_OF_BYTE = [crc_of_byte(value) for value in range(256)]


def read_request(record: memoryview) -> tuple[str, dict[str, np.ndarray]]:
    """Reads a PredictionLog: the signature's name and an array for each input."""
    found = dict(fields(record))
    if 6 not in found:
        raise RefusalError(f"a warm-up record without predict_log: fields {sorted(found)}")
    signature, inputs = "serving_default", {}
    for number, value in fields(dict(fields(found[6]))[1]):  # The fields of PredictRequest.
        if number == 1:
            signature = bytes(dict(fields(value)).get(3, b"")).decode() or signature
        elif number == 2:
            name, tensor = entry(value)
            inputs[name] = read_tensor(tensor)
    return signature, inputs


def read_tensor(message: memoryview) -> np.ndarray:
    """Reads a TensorProto."""
    dtype, sizes, content, values = None, [], b"", []
    for number, value in fields(message):
        if number == 1:
            dtype = DTYPES[value]
        elif number == 2:
            sizes = [dict(fields(dim)).get(1, 0) for key, dim in fields(value) if key == 2]
        elif number == 4:
            content = bytes(value)
        elif number == STRING_VAL:
            values.append(bytes(value))
        elif number == FLOAT_VAL:
            values += struct.unpack(f"<{len(value) // 4}f", value)
        elif number in INTEGER_VALS.values():
            values += [value] if isinstance(value, int) else unpacked(value)
    if content:
        return np.frombuffer(content, dtype).reshape(sizes)
    values += values[-1:] * (int(np.prod(sizes)) - len(values))  # Values that repeat the last one need not be written.
    if dtype == "string":
        return np.array(values, dtype=object).reshape(sizes)
    return np.array(values).astype(dtype).reshape(sizes)


def unpacked(data: memoryview) -> list[int]:
    """Reads numbers that were written one after the other."""
    values, at = [], 0
    while at < len(data):
        value, at = read_varint(data, at)
        values.append(value if value < 1 << 63 else value - (1 << 64))
    return values
