"""From a translator to a folder that TensorFlow Serving runs; for the program, see `serving.export_arguments`."""

import datetime
import hashlib
import importlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path

import keras
import numpy as np

from keras_transformer.models import Transformer
from keras_transformer.serving.export_arguments import DEVICES, DTYPES, parse_arguments
from keras_transformer.serving.playground import check_languages
from keras_transformer.serving.samples import SAMPLES, examples_in, languages_of_run, samples_of_run
from keras_transformer.serving.server_files import BATCH_SIZES, COMPOSE_ON_GPU, write_server_files
from keras_transformer.serving.verification import verify
from keras_transformer.serving.versions import BESIDE, keep_newest, new_version
from keras_transformer.translator import Translator
from keras_transformer.version import __version__


def export_saved_model(
    translator: Translator,
    directory: str | os.PathLike,
    version: int | None = None,
    *,
    max_source_tokens: int | None = None,
    max_target_tokens: int | None = None,
    max_beam_size: int | None = None,
    num_hypotheses: int | None = None,
    dtype: str | None = None,
    device: str = "gpu",
    batch_sizes: Sequence[int] = BATCH_SIZES,
    samples: Sequence[str] = SAMPLES,
    languages: Sequence[str] | None = None,
    keep: int | None = None,
    progress: bool | None = None,
) -> Path:
    """Writes a translator as a SavedModel for TensorFlow Serving, with all that is needed to start a server.

    The version appears when it is complete: written, loaded in TensorFlow's C runtime by a process that knows nothing of this
    package, and found to answer as the translator does.

    Args:
        translator: The translator. Its options become the defaults of the served model.
        directory: The folder of the model, whose last part is its name on the server. Versions are numbered folders in it.
        version: Number of the version, larger than those in the folder. Defaults to the next one.
        max_source_tokens: Where sources are cut. Defaults to what the model takes.
        max_target_tokens: The most tokens of a translation. Defaults to that of the longest source, and 50 more.
        max_beam_size: The widest beam that a request may ask for. Defaults to the translator's.
        num_hypotheses: How many translations the signature `nbest` returns. Defaults to 4, or the beam if it is smaller.
        dtype: `"float16"` or `"bfloat16"` to compute in half precision, for GPUs. Defaults to what the model computes in.
        device: What the server is to compute on: `"gpu"`, or `"cpu"`, where weights are stored in a layout that is faster
            there. The answers are the same, and either runs on both.
        batch_sizes: The batch sizes that the server is to put requests together in.
        samples: Texts that the export is compared with the translator on, and that warm up the server; the first are the
            examples of its pages. Give some that the model knows.
        languages: The codes of the source and the target language, such as `("en", "de")`, which the playground names.
        keep: How many versions to keep, at least one. Defaults to all.
        progress: Whether to say on the standard error stream what is being done, which may take minutes. Defaults to whether
            that stream is a terminal.

    Returns:
        The folder of the version.

    Example:

        kt.export_saved_model(translator, "saved_models/en-de")  # saved_models/en-de/1
    """
    directory, samples, batch_sizes = Path(directory), list(samples), sorted(set(batch_sizes))
    check_arguments(translator, directory, dtype, device, batch_sizes, samples, keep)
    check_languages(languages)
    options = {
        "max_source_tokens": max_source_tokens,
        "max_target_tokens": max_target_tokens,
        "max_beam_size": max_beam_size,
        "num_hypotheses": num_hypotheses,
    }
    progress = sys.stderr.isatty() if progress is None else progress
    if keras.backend.backend() != "tensorflow":
        settings = {"version": version, "dtype": dtype, "device": device, "batch_sizes": batch_sizes, "samples": samples}
        settings |= {"languages": languages, "keep": keep, "progress": progress}
        return export_elsewhere(translator, directory, {**options, **settings})
    from keras_transformer.serving.signatures import served_limits

    translator = in_precision(translator, dtype)
    limits = served_limits(translator, **options)
    tell = say if progress else say_nothing
    with new_version(directory, version) as folder:
        write_version(folder, directory.resolve().name, translator, limits, device, batch_sizes, samples, tell)
        number = int(folder.name.split("-")[1])
        info = json.loads((folder / "export_info.json").read_text(encoding="utf8"))
        write_server_files(
            folder / BESIDE, directory.resolve().name, number, info, batch_sizes, examples_in(samples), languages
        )
    if device == "cpu":  # What an export for GPUs has left there would start a server that this version is not for.
        (directory / COMPOSE_ON_GPU).unlink(missing_ok=True)
    if keep is not None:
        keep_newest(directory, keep)
    tell(f"version {number} is complete")
    return directory / str(number)


def check_arguments(
    translator: Translator,
    directory: Path,
    dtype: str | None,
    device: str,
    batch_sizes: list[int],
    samples: list[str],
    keep: int | None,
):
    """Raises a `ValueError` for what cannot be exported."""
    if not translator.tokenizer.has_graph_form:
        raise ValueError(
            "This tokenizer works in Python only and cannot be part of a SavedModel. Use a `kt.Tokenizer`, or a SentencePiece "
            f"tokenizer of keras-hub. Received: {translator.tokenizer!r}"
        )
    if translator.options.is_sampling:
        raise ValueError("A served model searches; it does not draw. Export a translator whose options have no `temperature`")
    if dtype not in DTYPES:
        raise ValueError(f"`dtype` must be one of {list(DTYPES)}. Received: dtype={dtype!r}")
    if device not in DEVICES:
        raise ValueError(f"`device` must be one of {DEVICES}. Received: device={device!r}")
    if not batch_sizes or batch_sizes[0] < 1:
        raise ValueError(f"`batch_sizes` must be positive numbers. Received: {batch_sizes}")
    if not samples or not samples[0].strip():
        raise ValueError("`samples` needs at least one text, and the first must not be blank: a server is warmed up with it")
    if keep is not None and keep < 1:
        raise ValueError(f"`keep` must be at least 1, for the version that is exported. Received: keep={keep}")
    check_name(directory.resolve().name, "The last part of the directory")


def check_name(name: str, what: str):
    """Raises a `ValueError` for what cannot be the name of a model on a server.

    Args:
        name: The name.
        what: Where it comes from, for the error message.
    """
    if not name or name.isdigit() or not all(letter.isalnum() or letter in "-_." for letter in name):
        raise ValueError(
            f"{what} is the model's name on the server: letters, digits, '-', '_' and '.', and not a number alone. "
            f"Received: {name!r}"
        )


def in_precision(translator: Translator, dtype: str | None) -> Translator:
    """Returns a translator that computes in another precision, with the same weights."""
    if DTYPES[dtype] is None or keras.dtype_policies.get(DTYPES[dtype]) == translator.model.dtype_policy:
        return translator
    config = {**translator.model.get_config(), "dtype": keras.dtype_policies.serialize(keras.dtype_policies.get(DTYPES[dtype]))}
    model = Transformer.from_config(config)
    model.set_weights(translator.model.get_weights())
    return Translator(model, translator.tokenizer, translator.options)


def say(line: str):
    """Says on the standard error stream what an export is doing."""
    print(f"export: {line}", file=sys.stderr, flush=True)


def say_nothing(line: str):
    """Keeps what an export is doing to itself."""


def write_version(
    folder: Path,
    name: str,
    translator: Translator,
    limits,
    device: str,
    batch_sizes: list[int],
    samples: list[str],
    tell: Callable[[str], None],
):
    """Writes a SavedModel with everything that belongs into its folder, and checks it."""
    import tensorflow as tf  # noqa: TID251

    from keras_transformer.serving.graph_checks import check_graph, read_graph
    from keras_transformer.serving.signatures import ServedTranslator
    from keras_transformer.serving.slimming import slim_saved_model
    from keras_transformer.serving.warm_up import write_warm_up

    served = ServedTranslator(translator, limits, device)
    signatures = served.signatures(tell)
    options = {"beam_size": limits.beam_size, "length_penalty": float(translator.options.length_penalty), "max_length": 0}
    tell("writing the SavedModel")
    try:
        tf.saved_model.save(served, str(folder), signatures=signatures)
        write_warm_up(folder, name, batch_sizes, samples[0].split(), options)
    except tf.errors.OpError as error:  # What TensorFlow has for a full disk, behind the name of a function.
        raise OSError(f"The export could not be written: {error.message.rpartition('}} ')[2]}") from error
    tell("checking its graph")
    check_graph(read_graph(folder))
    slim_saved_model(folder, device)
    info = {**export_info(translator, limits, batch_sizes), "device": device}
    (folder / "export_info.json").write_text(json.dumps(info, indent=2) + "\n", encoding="utf8")
    verify(folder, translator, samples, limits, tell)


def export_info(translator: Translator, limits, batch_sizes: list[int]) -> dict:
    """Returns what there is to know about an export."""
    import tensorflow as tf  # noqa: TID251

    return {
        "exported": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "keras_transformer": __version__,
        "tensorflow": tf.__version__,
        "keras": keras.__version__,
        "weights": weights_digest(translator.model),
        "tokenizer": translator.tokenizer.fingerprint,
        "parameters": translator.model.count_params(),
        "dtype": translator.model.dtype_policy.name,
        "defaults": asdict(translator.options),
        "limits": asdict(limits),
        "batch_sizes": batch_sizes,
    }


def weights_digest(model: Transformer) -> str:
    """Returns a hexadecimal digest of all weights."""
    digest = hashlib.sha256()
    for variable in model.variables:
        digest.update(variable.path.encode())
        digest.update(np.ascontiguousarray(keras.ops.convert_to_numpy(variable)).tobytes())
    return digest.hexdigest()


# === On another backend ===


def export_elsewhere(translator: Translator, directory: Path, settings: dict) -> Path:
    """Exports in a process of its own, which computes on TensorFlow."""
    modules = {block.__module__ for block in (translator.model.encoder_block, translator.model.decoder_block)}
    if "__main__" in modules:
        raise ValueError(
            "A model with blocks of your own is exported in another process, which must be able to import them. Put their "
            "classes into a module, or run this program with KERAS_BACKEND=tensorflow"
        )
    if settings["progress"]:
        say("starting a process that computes on TensorFlow")
    with tempfile.TemporaryDirectory() as folder:
        translator.save(Path(folder) / "translator")
        (Path(folder) / "settings.json").write_text(json.dumps(settings), encoding="utf8")
        command = [str(Path(folder) / "translator"), str(directory), "--settings", str(Path(folder) / "settings.json")]
        for module in sorted(modules):
            command += ["--import", module]
        result = run_on_tensorflow(command)
    if result.returncode:
        raise ValueError("The export failed; the reason is above")
    return Path(result.stdout.splitlines()[-1])


def run_on_tensorflow(arguments: list[str]) -> subprocess.CompletedProcess:
    """Runs this module on TensorFlow. The last line that it prints is the folder of the version."""
    environment = {**os.environ, "KERAS_BACKEND": "tensorflow", "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-m", __spec__.name if __spec__ else __name__, *arguments]
    return subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=False)


# === The command line ===


def main(arguments: Sequence[str] | None = None):
    """Exports what the command line asks for. What cannot be exported, or written, is an error in one line and exit code 2."""
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    options = parse_arguments(arguments)
    if keras.backend.backend() != "tensorflow":
        say("starting a process that computes on TensorFlow")
        result = run_on_tensorflow(arguments)
        if result.returncode:
            sys.exit(result.returncode)
        print(result.stdout.splitlines()[-1])
        return
    settings = {name: value for name, value in vars(options).items() if name not in ("run", "out", "imports", "settings")}
    settings["progress"] = True
    if options.settings:
        settings = json.loads(options.settings.read_text(encoding="utf8"))
    for module in options.imports:
        importlib.import_module(module)
    try:
        settings["samples"] = settings["samples"] or samples_of_run(options.run)
        settings["languages"] = settings["languages"] or languages_of_run(options.run)
        print(export_saved_model(Translator.load(options.run), options.out, **settings))
    except (ValueError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    main()
