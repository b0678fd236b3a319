"""What all commands of this folder share: how they end, and how they say what is wrong."""

import os
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console

PIPE_WIDTH = 160
INTERRUPTED = 130  # What shells return for Ctrl-C.
MOST_LETTERS = 200  # Of a library's message.


LESS_MEMORY = "give a smaller --batch-tokens or --beam-size, if the command has them"


def run_command(run: Callable[[], None], on_interrupt: str = "Stopped.", less_memory: str = LESS_MEMORY) -> int:
    """Runs a command; errors that a user can act on are said in one place, without a traceback.

    Args:
        run: The work.
        on_interrupt: What to say if the user stops it.
        less_memory: What to do if there is not enough memory for the work.

    Returns:
        The exit code: 0, 2 if something is wrong with what was given, with a disk or with what is installed, or if there is not
        enough memory, 130 if the user stopped it.
    """
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    with warnings.catch_warnings():
        warnings.simplefilter("default", UserWarning)
        warnings.showwarning = show_warning
        try:
            run()
        except KeyboardInterrupt:
            print(f"\n{on_interrupt}", file=sys.stderr)
            return INTERRUPTED
        except (ValueError, OSError, FloatingPointError, ImportError) as error:
            print(f"error: {in_one_line(str(error))}", file=sys.stderr)
            return 2
        except Exception as error:
            if not is_out_of_memory(error):
                raise
            print(f"error: there is not enough memory: {less_memory}. {beginning_of(error)}", file=sys.stderr)
            return 2
    return 0


def is_out_of_memory(error: BaseException) -> bool:
    """Tells whether an error is what Python, TensorFlow, JAX or torch has for memory that cannot be had, on whatever device."""
    names = {kind.__name__ for kind in type(error).__mro__}
    if names & {"MemoryError", "OutOfMemoryError"}:
        return True
    message = str(error)
    if "No space left on device" in message:  # TensorFlow has the same error for disks.
        return False
    is_exhausted = "ResourceExhaustedError" in names or "RESOURCE_EXHAUSTED" in message
    return is_exhausted or (isinstance(error, RuntimeError) and "DefaultCPUAllocator" in message)


def beginning_of(error: BaseException) -> str:
    """Returns the kind of an error and the beginning of its message in a line, for libraries that write pages."""
    message = " ".join(str(error).split())
    return f"Received: {type(error).__name__}" + (f": {message[:MOST_LETTERS]}" if message else "")


def share_cores():
    """Lets sentences share the cores of a CPU on TensorFlow, not operations, unless the user has decided otherwise.

    It is what `keras_transformer.parallel_sentences` does, and must come before the backend. For commands that translate:
    training steps gain by it only where the model is large.
    """
    os.environ.setdefault("TF_NUM_INTRAOP_THREADS", "1")


def load_backend():
    """Loads Keras and its backend, without what their libraries have to say about drivers that they miss."""
    with kept_back():
        import keras_transformer  # noqa: F401  # First: it says what is wrong with a backend.

        from .machine import devices

        devices()


def load_devices(request, model_parallel: int):
    """Loads Keras and its backend and finds the devices that a command asks for.

    Args:
        request: A `training.device_request.DeviceRequest`.
        model_parallel: Among how many devices the model is divided.

    Returns:
        `training.devices.Devices`.
    """
    if request.processes > 1:  # What goes wrong between processes should be seen at once.
        import keras_transformer  # First: it says what is wrong with a backend.

        from .devices import open_devices

        return open_devices(request, model_parallel)
    with kept_back():
        import keras_transformer  # noqa: F401  # First: it says what is wrong with a backend.

        from .devices import open_devices
        from .machine import devices as names_of_devices

        found = open_devices(request, model_parallel)
        names_of_devices()
        return found


@contextmanager
def kept_back() -> Iterator[None]:
    """Keeps back what is written to the standard error stream, by libraries too, unless there is an error."""
    sys.stderr.flush()
    own = os.dup(2)
    with tempfile.TemporaryFile() as kept:
        os.dup2(kept.fileno(), 2)
        try:
            yield
        except BaseException:
            kept.seek(0)
            os.write(own, kept.read())
            raise
        finally:
            os.dup2(own, 2)
            os.close(own)


def python_name() -> Path:
    """Returns this Python as one types it in this folder."""
    python = Path(sys.executable)
    return python.relative_to(Path.cwd()) if python.is_relative_to(Path.cwd()) else python


def in_one_line(message: str) -> str:
    """Joins the lines of a message, unless it shows something of several lines after a colon."""
    head, colon, shown = message.partition(":\n")
    return f"{' '.join(head.split())}{colon}{shown}"


def show_warning(message, category, filename, lineno, file=None, line=None):
    """Shows a warning as a line for people."""
    print(f"warning: {message}", file=sys.stderr)


def make_console() -> Console:
    """Makes the console of tables: as wide as the terminal, or wide enough for every table where there is none."""
    console = Console()
    return console if console.is_terminal else Console(width=PIPE_WIDTH)
