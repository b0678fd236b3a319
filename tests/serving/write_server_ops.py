"""Writes the list of operations that servers have, from the TensorFlow wheels of their versions.

    pip install --no-deps --target 2.17.1 tensorflow==2.17.1     # and so on
    python -m tests.serving.write_server_ops 2.17.1 2.18.1 2.20.0

A server links what its version of TensorFlow has, and tensorflow-text's operations; of those, an export uses SentencePiece's.
"""

import ctypes
import subprocess
import sys
from pathlib import Path

SERVING = Path(__file__).resolve().parents[2] / "keras_transformer" / "serving"
PAGE = SERVING / "server_ops.txt"
OF_TENSORFLOW_TEXT = (
    "SentencepieceDetokenizeOp",
    "SentencepieceIdToStringOp",
    "SentencepieceOp",
    "SentencepieceStringToIdOp",
    "SentencepieceTokenizeOp",
    "SentencepieceTokenizeWithOffsetsOp",
    "SentencepieceVocabSizeOp",
)


class Buffer(ctypes.Structure):
    """A TF_Buffer."""

    _fields_ = [("data", ctypes.c_void_p), ("length", ctypes.c_size_t), ("free", ctypes.c_void_p)]


def operations(packages: Path) -> set[str]:
    """Returns the names of the operations that a wheel has; to be called in a process of its own."""
    sys.path.insert(0, str(SERVING))
    from runtime import fields  # By itself: the package would load another TensorFlow.

    folder = packages / "tensorflow"
    ctypes.CDLL(str(folder / "libtensorflow_framework.so.2"), ctypes.RTLD_GLOBAL)
    library = ctypes.CDLL(str(folder / "libtensorflow_cc.so.2"))
    library.TF_GetAllOpList.restype = ctypes.POINTER(Buffer)
    buffer = library.TF_GetAllOpList().contents
    names = set()
    for _, op_def in fields(memoryview(ctypes.string_at(buffer.data, buffer.length))):
        names.add(bytes(next(value for number, value in fields(op_def) if number == 1)).decode())
    return names


def main(folders: list[str]):
    """Writes what all wheels have in common."""
    if folders[:1] == ["--list"]:
        print("\n".join(sorted(operations(Path(folders[1])))))
        return
    command = [sys.executable, "-I", __file__, "--list"]
    found = [subprocess.run([*command, folder], check=True, capture_output=True, text=True) for folder in folders]
    lists = [result.stdout.split() for result in found]
    common = set.intersection(*map(set, lists)) | set(OF_TENSORFLOW_TEXT)
    PAGE.write_text("\n".join(sorted(common)) + "\n", encoding="utf8")
    print(f"{len(common)} operations in {PAGE}")


if __name__ == "__main__":
    main(sys.argv[1:])
