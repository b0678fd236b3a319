"""The last part of the demo: its model as a SavedModel, and a translation through it."""

from pathlib import Path

from rich.console import Console
from rich.text import Text

import keras_transformer as kt
from keras_transformer.serving import SavedModelSession
from keras_transformer.serving.versions import versions_in

from .command import python_name
from .demo_show import FAMOUS
from .machine import devices
from .run_folder import RunFolder


def export(run: RunFolder, console: Console, output: Path) -> Path:
    """Exports the finished model, unless that was done before, and translates with what was written.

    Args:
        run: The run.
        console: Where to print.
        output: The folder of the model.

    Returns:
        The folder of the version.
    """
    sentences = [source for source, _, _ in FAMOUS]
    console.print(Text("Exported for TensorFlow Serving, and translated by what was exported:", style="bold"))
    version = finished_export(run, output) or kt.export_saved_model(
        kt.Translator.load(run.translator), output, device=server_device(), samples=sentences, keep=2
    )
    with SavedModelSession(version) as session:
        answer = session.run("serving_default", {"text": sentences})
    for source, translation, score in zip(sentences, answer["translation"], answer["score"], strict=True):
        console.print(Text(f"  {source}"), soft_wrap=True)
        console.print(Text(f"  -> {translation.decode()} (score {score:.3f})"), soft_wrap=True)
    console.print(Text(f"\nServe it:  {python_name()} -m keras_transformer.serving.serve {output}\n"), soft_wrap=True)
    return version


def server_device() -> str:
    """Returns what a server on this machine would compute on."""
    return "cpu" if all(name.lower().startswith("cpu") for name in devices()) else "gpu"


def finished_export(run: RunFolder, output: Path) -> Path | None:
    """Returns the newest version if it is younger than the run's translator."""
    versions = versions_in(output)
    if not versions:
        return None
    newest = output / str(versions[-1])
    is_younger = newest.stat().st_mtime >= (run.translator / "translator.json").stat().st_mtime
    return newest if is_younger else None
