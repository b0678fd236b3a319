"""What every test can use: proof sizes, a record of what a proof saw, and reproducible randomness."""

import contextlib
import json
import os

os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_FP16")  # See the Makefile.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

with contextlib.suppress(ImportError):
    import torch  # noqa: F401  (before TensorFlow, or the two libraries' threads get in each other's way)

import keras
import numpy as np
import pytest

PROVING = os.environ.get("PROVE") == "1"


def pytest_configure(config):
    config.addinivalue_line("markers", "proof(claim): shows a claim of docs/evidence.md; `make prove` runs it at full size")


def pytest_addoption(parser):
    parser.addoption("--all-backends", action="store_true", help="run on this backend too what is the same on every one")
    parser.addoption("--only-proofs", action="store_true", help="run the tests that are marked as proofs, and no others")


# Tests of what does not depend on the backend run on one of them.
ON_ONE_BACKEND = "torch"
SAME_ON_EVERY_BACKEND = (
    "tests/benchmarks/",
    "tests/bridges/test_ctranslate2.py",
    "tests/bridges/test_marian_download.py",
    "tests/bridges/test_marian_refused.py",
    "tests/data/corpora/",
    "tests/data/test_plan.py",
    "tests/data/test_reading.py",
    "tests/data/test_store.py",
    "tests/serving/test_client.py",
    "tests/serving/test_grpc_client.py",
    "tests/serving/test_hostile_server.py",
    "tests/serving/test_local_server.py",
    "tests/serving/test_playground.py",
    "tests/serving/test_runtime.py",
    "tests/serving/test_serve.py",
    "tests/serving/test_versions.py",
    "tests/test_backends.py",
    "tests/test_docstrings.py",
    "tests/test_documents.py",
    "tests/test_folders.py",
    "tests/test_json_files.py",
    "tests/test_locks.py",
    "tests/test_translator.py::test_a_killed_save",
    "tests/text/",
    "tests/training/test_building.py",
    "tests/training/test_capacity.py",
    "tests/training/test_commands.py",
    "tests/training/test_console.py",
    "tests/training/test_data.py",
    "tests/training/test_deploy.py",
    "tests/training/test_device_batches.py",
    "tests/training/test_device_request.py",
    "tests/training/test_devices.py",
    "tests/training/test_full_disk.py",
    "tests/training/test_launch.py",
    "tests/training/test_page.py",
    "tests/training/test_prepare_wmt14.py",
    "tests/training/test_recipe.py",
    "tests/training/test_report.py",
    "tests/training/test_run_folder.py",
    "tests/training/test_run_log.py",
    "tests/training/test_scores.py",
    "tests/training/test_start_from.py",
    "tests/visualization/",
)


# Tests that would compile for long, of what hardly depends on the backend: `make test` runs them on one backend, `make prove`
# the proofs among them on all, and --all-backends every one.
QUICKEST_ON = {
    "tests/bridges/test_marian.py::test_a_language_code": "torch",  # But for the logits. TensorFlow has the exported ones.
    "tests/bridges/test_marian.py::test_fine_tuning": "torch",
    "tests/bridges/test_marian.py::test_greedy_translations": "torch",
    "tests/bridges/test_marian.py::test_it_is_an_ordinary_translator": "torch",
    "tests/bridges/test_marian.py::test_scores_and_texts": "torch",
    "tests/bridges/test_marian.py::test_translations": "torch",
    "tests/callbacks/test_bleu.py": "torch",
    "tests/callbacks/test_killed_runs.py": "torch",
    "tests/data/test_accumulation.py::test_evaluation_has_neither": "torch",
    "tests/data/test_accumulation.py::test_fit_with_accumulation_validates": "torch",
    "tests/data/test_accumulation.py::test_without_weights": "torch",
    "tests/data/test_parallel.py::test_an_interrupted_epoch_goes_on": "torch",
    "tests/data/test_parallel.py::test_fit_with_validation_and_evaluate": "torch",
    "tests/data/test_parallel.py::test_the_first_epoch_of_a_later_fit": "torch",
    "tests/data/test_parallel.py::test_the_same_batches_in_another_process": "torch",
    "tests/foreign/test_keras_attention_behaviour.py::test_any_length": "torch",
    "tests/foreign/test_keras_attention_behaviour.py::test_low_rank": "torch",
    "tests/models/test_saving.py::test_saved_on_one_backend": "tensorflow",
    "tests/models/test_transformer.py::test_lora": "torch",
    "tests/models/test_transformer.py::test_quantize": "torch",
    "tests/test_attention.py::test_any_text": "torch",
    "tests/test_attention.py::test_steps_and_teacher_forcing_agree": "torch",
    "tests/test_losses.py::test_less_than_half_of_the_memory": "tensorflow",
    "tests/test_translator.py::test_a_full_disk": "torch",
    "tests/test_translator.py::test_a_long_text_is_cut": "torch",
    "tests/test_translator.py::test_a_long_translation_is_cut": "torch",
    "tests/test_translator.py::test_any_text": "torch",
    "tests/test_translator.py::test_every_option_with_every_kind": "torch",
    "tests/test_translator.py::test_hypotheses_and_scores": "torch",
    "tests/test_translator.py::test_ids_that_no_text_stands_for": "torch",
    "tests/test_translator.py::test_save_and_load": "torch",
    "tests/training/test_demo.py": "tensorflow",
    "tests/training/test_your_data.py": "tensorflow",
}


def pytest_collection_modifyitems(config, items):
    if config.getoption("--only-proofs"):
        items[:] = [item for item in items if item.get_closest_marker("proof")]
    if config.getoption("--all-backends"):
        return
    backend = keras.backend.backend()
    named = tuple(
        arg.split("::")[0] for arg in config.args if ".py" in arg
    )  # Files that somebody asks for by name run anywhere.
    elsewhere = () if backend == ON_ONE_BACKEND else SAME_ON_EVERY_BACKEND
    if not PROVING:
        elsewhere += tuple(start for start, quickest in QUICKEST_ON.items() if quickest != backend)
    items[:] = [item for item in items if item.nodeid.startswith(named) or not item.nodeid.startswith(elsewhere)]


@pytest.fixture
def size():
    """Chooses between the size of a proof in `make test` and in `make prove`: `size(50, full=10_000)`."""
    return lambda sample, full: full if PROVING else sample


@pytest.fixture
def seen(request):
    """Notes what a proof saw: `seen(f"largest difference {difference:.1e}")`."""
    notes = []
    request.node.seen = notes
    return notes.append


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    report = (yield).get_result()
    marker = item.get_closest_marker("proof")
    path = os.environ.get("EVIDENCE")
    if marker and path and (report.when == "call" or report.outcome != "passed"):
        line = {
            "claim": marker.args[0],
            "test": item.nodeid,
            "backend": keras.backend.backend(),
            "outcome": report.outcome,
            "seen": getattr(item, "seen", []),
        }
        with open(path, "a", encoding="utf8") as file:
            file.write(json.dumps(line) + "\n")


@pytest.fixture(autouse=True)
def seeded():
    keras.utils.set_random_seed(7)


@pytest.fixture(autouse=True)
def same_threads():
    """Commands that a test calls may set how TensorFlow uses threads; the next test does not have it."""
    before = os.environ.get("TF_NUM_INTRAOP_THREADS")
    yield
    os.environ.pop("TF_NUM_INTRAOP_THREADS", None)
    if before is not None:
        os.environ["TF_NUM_INTRAOP_THREADS"] = before


@pytest.fixture
def random():
    return np.random.default_rng(7)


@pytest.fixture(params=["float32", "mixed_bfloat16", "mixed_float16"])
def policy(request):
    """Runs a test under each dtype policy."""
    keras.config.set_dtype_policy(request.param)
    yield request.param
    keras.config.set_dtype_policy("float32")
