"""Objects of JSON: whatever a file holds, its content or a ValueError that names it."""

import pytest

from keras_transformer.json_files import read_json


def written(tmp_path, content: bytes):
    (tmp_path / "settings.json").write_bytes(content)
    return tmp_path / "settings.json"


def test_an_object(tmp_path):
    content = '{"a": [1, 2.5e3, null, true], "ü": {"b": "c"}}'
    assert read_json(written(tmp_path, content.encode())) == {"a": [1, 2500.0, None, True], "ü": {"b": "c"}}


@pytest.mark.parametrize(
    "content, message",
    [
        (b'{"a": NaN}', "is not JSON (NaN is not a finite number)"),
        (b'{"a": [-Infinity]}', "is not JSON (-Infinity is not a finite number)"),
        (b'{"a": 1e999}', "is not JSON (1e999 is not a finite number)"),
        (b'{"a": ' + b"9" * 5000 + b"}", "is not JSON (Exceeds the limit"),
        (b'{"a": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", "is not JSON (maximum recursion depth exceeded"),
        (b'{"a": ' * 100_000, "is not JSON (maximum recursion depth exceeded"),
        (b"[1, 2]", "must hold an object of JSON. Received: list"),
        (b"null", "must hold an object of JSON. Received: NoneType"),
        (b'{"a": 1', "Was it cut off or damaged while it was copied?"),
        (b'{"a": "\xff"}', "is not JSON ('utf-8' codec"),
        (b"\x00" * 20, "is not JSON"),
        (b"", "is not JSON"),
    ],
)
def test_what_is_no_object_of_finite_numbers(tmp_path, content, message):
    path = written(tmp_path, content)
    with pytest.raises(ValueError) as error:
        read_json(path)
    assert str(error.value).startswith(str(path)) and message in str(error.value)
