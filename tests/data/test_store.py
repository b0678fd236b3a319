"""The cache of tokenized corpora: found again, made again when something changed, never half written."""

import errno
import io
import json
import multiprocessing
import os
import shutil
from pathlib import Path

import numpy as np
import pytest

import keras_transformer as kt
from keras_transformer.data import building, parallel_dataset, store
from keras_transformer.data.store import Store
from tests.data.conftest import generated_lines
from tests.dying import full_disk, killed


@pytest.fixture
def builds(monkeypatch):
    """Counts how often a corpus is tokenized."""
    count = []
    build = building.build
    monkeypatch.setattr(building, "build", lambda *args: count.append(1) or build(*args))
    return count


def stores(tmp_path) -> list:
    return sorted(path for path in (tmp_path / "cache" / "datasets").iterdir())


def test_files_are_tokenized_once(files, tokenizer, builds, tmp_path):
    first = parallel_dataset(*files, tokenizer)
    renamed = [path.rename(path.with_suffix(path.suffix + ".txt")) for path in files]
    second = parallel_dataset(*renamed, tokenizer, batch_tokens=512, seed=4)
    assert len(builds) == 1
    assert second.statistics == first.statistics
    assert len(stores(tmp_path)) == 1


def test_whatever_changes_the_ids_makes_a_new_store(files, tokenizer, builds):
    other = kt.Tokenizer.train(iter(generated_lines(200, seed=3)[0]), vocabulary_size=300)
    parallel_dataset(*files, tokenizer)
    parallel_dataset(*files, other)
    parallel_dataset(*files, tokenizer, max_length=5)
    parallel_dataset(*files, kt.TokenizerPair(tokenizer, other))
    assert len(builds) == 4
    with files[0].open("a") as file, files[1].open("a") as other_file:
        file.write("ba\n")
        other_file.write("be\n")
    assert parallel_dataset(*files, tokenizer).num_pairs == 301
    assert len(builds) == 5


@pytest.mark.parametrize("name", ["source.ids", "target.ids.offsets", "index.json"])
@pytest.mark.parametrize("damage", ["cut", "changed", "removed"])
def test_a_damaged_store_is_made_again(files, tokenizer, builds, tmp_path, name, damage):
    expected = list(parallel_dataset(*files, tokenizer).batches(0))
    path = stores(tmp_path)[0] / name
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    if damage == "removed":
        path.unlink()
    else:
        path.write_bytes(content[:-1] if damage == "cut" else content)
    if (name, damage) == ("index.json", "changed"):
        path.write_text(json.dumps({"version": 99}))
    if (name, damage) == ("index.json", "cut"):
        path.write_text("[" * 100_000)
    with pytest.warns(UserWarning, match="damaged and is made again"):
        batches = list(parallel_dataset(*files, tokenizer).batches(0))
    assert len(builds) == 2
    for (inputs, labels), (expected_inputs, expected_labels) in zip(batches, expected, strict=True):
        np.testing.assert_array_equal(labels, expected_labels)
        np.testing.assert_array_equal(inputs["source_ids"], expected_inputs["source_ids"])


def test_an_interrupted_build_leaves_nothing(files, tokenizer, monkeypatch, tmp_path):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(building, "write_chunk", interrupt)
    with pytest.raises(KeyboardInterrupt):
        parallel_dataset(*files, tokenizer)
    assert stores(tmp_path) == []


def no_space(*_, **__):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


class FullDisk(io.FileIO):
    """A file that nothing can be written to."""

    write = no_space


def fill_up_when(moment, monkeypatch):
    if moment == "open":
        left = [True, True, False]  # Two files can be opened.
        monkeypatch.setattr(store, "open", lambda *given: io.FileIO(*given) if left.pop(0) else no_space(), raising=False)
        return
    if moment == "index":
        monkeypatch.setattr(Path, "write_text", no_space)
        return
    buffer = {"write": 16, "close": 1 << 20}[moment]  # Bytes, before anything is written.
    monkeypatch.setattr(store, "open", lambda path, mode: io.BufferedWriter(FullDisk(path, mode), buffer), raising=False)


@pytest.mark.parametrize("moment", ["open", "write", "close", "index"])
def test_a_full_disk_is_said_and_nothing_is_left_on_it(files, tokenizer, monkeypatch, tmp_path, moment):
    fill_up_when(moment, monkeypatch)
    with pytest.raises(OSError, match="No space left on device"):
        parallel_dataset(*files, tokenizer)
    assert stores(tmp_path) == []


@pytest.mark.proof("A full disk while a corpus is tokenized is an error that names the cache, and leaves nothing in it")
def test_a_disk_that_fills_up(files, tokenizer, tmp_path, size, seen):
    parallel_dataset(*files, tokenizer)
    (whole,) = stores(tmp_path)
    largest = max(path.stat().st_size for path in whole.iterdir())
    shutil.rmtree(whole)
    rooms = [largest * part // size(3, full=20) for part in range(size(3, full=20))]
    for room in rooms:
        with full_disk(room), pytest.raises(OSError, match=rf"untouched. Make room, or choose another place: .*{whole.name}"):
            parallel_dataset(*files, tokenizer)
        assert stores(tmp_path) == []
    parallel_dataset(*files, tokenizer)
    seen(f"{len(rooms)} sizes from 0 to {rooms[-1]:,} bytes of {largest:,}")


@pytest.mark.proof(
    "Killed at any moment, a process that tokenizes a corpus leaves nothing in the cache that the next one keeps"
)
def test_what_a_killed_build_left_goes_with_the_next(files, tokenizer, tmp_path, size, seen):
    paths = [str(path) for path in files]
    parallel_dataset(*paths, tokenizer)
    kills = leftovers = 0
    for moment in range(1, 200, size(9, full=1)):
        if not killed(moment, lambda number=moment: parallel_dataset(*paths, tokenizer, max_length=number)):
            break
        kills, leftovers = kills + 1, leftovers + any(path.name.startswith(".") for path in stores(tmp_path))
        parallel_dataset(*paths, tokenizer)  # Another store than the one that was killed.
        assert not any(path.name.startswith(".") for path in stores(tmp_path))
    assert leftovers
    seen(f"{kills} kills, of which {leftovers} left something hidden, which is gone afterwards")


def build_in_process(paths, model, cache, barrier, results):
    os.environ["KERAS_TRANSFORMER_CACHE"] = cache
    barrier.wait()
    dataset = parallel_dataset(*paths, kt.Tokenizer(model), progress=False)
    results.put((dataset.num_pairs, dataset.statistics.tokens("source")))


def test_several_processes_can_build_at_once(files, tokenizer, tmp_path):
    context = multiprocessing.get_context("spawn")
    barrier, results = context.Barrier(2), context.Queue()
    arguments = (files, tokenizer.serialized, str(tmp_path / "cache"), barrier, results)
    processes = [context.Process(target=build_in_process, args=arguments) for _ in range(2)]
    for process in processes:
        process.start()
    found = [results.get(timeout=300) for _ in processes]
    for process in processes:
        process.join()
    assert found[0] == found[1] == (300, parallel_dataset(*files, tokenizer).statistics.tokens("source"))
    assert len(stores(tmp_path)) == 1


def test_the_folder_of_lines_from_python_goes_with_the_dataset(tokenizer):
    sources, targets = generated_lines(20)
    dataset = parallel_dataset(sources, targets, tokenizer)
    directory = dataset.store.directory
    assert directory.is_dir()
    del dataset
    assert not directory.exists()


def test_large_vocabularies_take_wider_numbers():
    assert building.id_type(65_536) == "uint16"
    assert building.id_type(65_537) == "int32"


def test_pairs_are_dropped_and_counted(tokenizer):
    long, short = " ".join(["ba"] * 60), "be"
    sources = ["ba be", "", "  ", "ba", long, long, "ka"]
    targets = ["da", "da", "da", "\t", long, short, "di"]
    dataset = parallel_dataset(sources, targets, tokenizer, max_length=len(tokenizer.encode(long)) - 1)
    statistics = dataset.statistics
    assert (statistics.read, statistics.kept) == (7, 2)
    assert statistics.dropped == {"without": 0, "empty": 3, "too_long": 2, "ratio": 0}
    dataset = parallel_dataset(sources, targets, tokenizer)
    assert dataset.statistics.dropped == {"without": 0, "empty": 3, "too_long": 0, "ratio": 1}
    held_out = parallel_dataset(sources, targets, tokenizer, without=["ka", "", "unheard of"])
    assert held_out.statistics.dropped == {"without": 2, "empty": 2, "too_long": 0, "ratio": 1}
    assert parallel_dataset(sources, targets, tokenizer, max_ratio=None).statistics.dropped["ratio"] == 0
    assert (dataset.statistics.source_words, dataset.statistics.target_words) == (2 + 60 + 1, 1 + 60 + 1)
    tokens = sum(len(tokenizer.encode(text)) for text in ("ba be", long, "ka"))
    assert dataset.statistics.tokens("source") == tokens
    assert dataset.statistics.tokens_per_word("source") == tokens / 63
    assert "7 read, 3 kept" in dataset.describe()
    assert "1 dropped: lengths that cannot belong together" in dataset.describe()


def test_what_is_left_out_has_a_store_of_its_own(files, tokenizer, tmp_path):
    whole = parallel_dataset(*files, tokenizer)
    source = files[0].read_text(encoding="utf8").splitlines()[0]
    rest = parallel_dataset(*files, tokenizer, without=[source])
    assert len(stores(tmp_path)) == 2
    assert rest.statistics.dropped["without"] >= 1
    assert rest.statistics.kept == whole.statistics.kept - rest.statistics.dropped["without"]


def test_the_statistics_are_stored(files, tokenizer, tmp_path):
    statistics = parallel_dataset(*files, tokenizer).statistics
    assert Store(stores(tmp_path)[0]).statistics == statistics
    assert statistics.length_at("source", 1.0) == max(statistics.source_lengths)
    assert statistics.length_at("source", 0.0) == min(statistics.source_lengths)
