"""How commands end, and how they say what is wrong."""

import sys

import keras
import pytest

from training import train, trainer, translate
from training.command import run_command


class ResourceExhaustedError(Exception):
    """Stands for TensorFlow's, which has this name."""


class XlaRuntimeError(RuntimeError):
    """Stands for JAX's, which has this name."""


class OutOfMemoryError(RuntimeError):
    """Stands for torch's, which has this name."""


def failing(error):
    def run():
        raise error

    return run


@pytest.mark.parametrize(
    "error",
    [
        ResourceExhaustedError("OOM when allocating tensor with shape[4096,37000]\n\t [[{{node MatMul}}]]"),
        XlaRuntimeError("RESOURCE_EXHAUSTED: Out of memory allocating 606208000 bytes.\nBufferAssignment OOM Debugging."),
        OutOfMemoryError("CUDA out of memory. Tried to allocate 578.00 MiB.\nGPU 0 has a total capacity of 14.56 GiB"),
        MemoryError(),
    ],
    ids=lambda error: type(error).__name__,
)
def test_out_of_memory_is_one_line_with_what_to_do(error, capsys):
    assert run_command(failing(error), less_memory="translate less at once") == 2
    message = capsys.readouterr().err
    assert message.startswith("error: there is not enough memory: translate less at once. Received: " + type(error).__name__)
    assert message.count("\n") == 1 and len(message) < 400


def test_what_the_backend_raises_when_memory_cannot_be_had(capsys):
    assert run_command(lambda: keras.ops.ones((10**7, 10**8))) == 2
    assert "not enough memory" in capsys.readouterr().err


@pytest.mark.parametrize("error", [ResourceExhaustedError("a/b; No space left on device"), RuntimeError("a shape is wrong")])
def test_other_errors_keep_their_traceback(error):
    with pytest.raises(type(error), match=str(error)):
        run_command(failing(error))


def test_training_without_enough_memory_says_which_keys_to_change(recipe, capsys, monkeypatch):
    monkeypatch.setattr(trainer.callbacks, "fit", lambda *args, **kwargs: failing(MemoryError())())
    assert train.main([str(recipe)]) == 2
    message = capsys.readouterr().err
    assert "halve data.batch_tokens" in message and "evaluation.beam_size" in message


def test_translating_without_enough_memory_says_which_options_to_change(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("keras_transformer.Translator.load", lambda directory: failing(MemoryError())())
    assert translate.main([str(tmp_path), str(__file__)]) == 2
    assert "a smaller --batch-tokens or --beam-size" in capsys.readouterr().err


def test_a_missing_library_is_one_line(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert run_command(lambda: __import__("matplotlib")) == 2
    assert capsys.readouterr().err == "error: import of matplotlib halted; None in sys.modules\n"
