"""Serves an export on this machine, without Docker; see `keras_transformer.serving.serve_arguments`."""

import json
import sys
import threading
import urllib.parse
from collections.abc import Sequence
from pathlib import Path

from keras_transformer.serving.local.batching import read_batching
from keras_transformer.serving.local.models import ServedModel
from keras_transformer.serving.local.server import LocalServer
from keras_transformer.serving.playground import page_at_origin, settings_of
from keras_transformer.serving.serve_arguments import parse_arguments
from keras_transformer.serving.versions import is_number, versions_in

EXPORT = "python -m keras_transformer.serving.export RUN"
TIMEOUT = 60.0  # Seconds that a request may take, as in docker-compose.yml.


def main(argv: Sequence[str] | None = None) -> int:
    """Serves until Ctrl-C. Returns the exit code: 0, or 2 for what cannot be served or listened at."""
    options = parse_arguments(argv)
    try:
        with make_server(options.folder, options.host, options.port) as server:
            (model,) = server.models.values()
            print("\n".join(["", *welcome(server.url, model), "", "Ctrl-C ends it."]), flush=True)
            threading.Event().wait()
    except KeyboardInterrupt:
        print("\nended", flush=True)
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except (OSError, OverflowError) as error:
        place = f"cannot listen at {options.host}, port {options.port}: {getattr(error, 'strerror', None) or error}"
        is_file = getattr(error, "filename", None) is not None
        print(f"error: {error}" if is_file else f"error: {place}. Choose others with --port or --host", file=sys.stderr)
        return 2
    return 0


def make_server(folder: Path, host: str, port: int) -> LocalServer:
    """Makes a server of an export, whose version has been loaded.

    Args:
        folder: The folder of the model, or of one of its versions.
        host: The address to listen at.
        port: The port; 0 takes a free one.

    Returns:
        The server, to be entered.

    Raises:
        ValueError: If the folder is not an export, or its version cannot be loaded.
        OSError: If the port is taken.
    """
    folder, only = find_export(folder)
    batching = read_batching(folder / "batching_parameters.txt")
    model = ServedModel(folder.name, folder, batching, only=only, report=lambda line: print(line, flush=True))
    server = LocalServer(
        [model], host, port, cors=True, timeout=TIMEOUT, poll_every=1.0, page=lambda: page_at_origin(folder, folder.name)
    )
    if not model.sessions:
        server.close()
        version, (_, error) = max(model.states.items())
        reason = " ".join(error.split())
        raise ValueError(f"version {version} in {folder} cannot be loaded: {reason}. Export it again: {EXPORT} {folder}")
    return server


def find_export(folder: Path) -> tuple[Path, int | None]:
    """Returns the folder of a model, and the version if it was the folder of one."""
    if (folder / "saved_model.pb").is_file() and is_number(folder.resolve().name):
        return folder.resolve().parent, int(folder.resolve().name)
    if not versions_in(folder):
        raise ValueError(
            f"{folder} is not an export: it has no version, a numbered folder with a saved_model.pb. Give the folder that an "
            f"export wrote, or export a run to it: {EXPORT} {folder}"
        )
    return folder.resolve(), None


def welcome(url: str, model: ServedModel) -> list[str]:
    """Returns what there is to know when a server has started."""
    url = url.replace("//0.0.0.0:", "//localhost:")
    lines = ["This server is for trying the model and for tests, not for production.", f"Open it:  {url}/"]
    examples = settings_of(model.folder).get("examples")
    if examples:
        body = json.dumps({"instances": [{"text": examples[0]}]}, ensure_ascii=False).replace("'", "'\\''")
        lines.append(f"Ask it:   curl -d '{body}' {url}/v1/models/{urllib.parse.quote(model.name)}:predict")
    return lines


if __name__ == "__main__":
    sys.exit(main())
