"""Curves: tables, ratios and pictures, and contenders that cannot do every size."""

from types import SimpleNamespace

import pytest
from rich.console import Console

from benchmarks import growth
from benchmarks.contenders import Contender
from benchmarks.growing.bounded_worker import BoundedWorker
from benchmarks.growing.curves import Curve, Point, decoding_by_batch, decoding_by_length, training_by_length
from benchmarks.growing.measuring import measure
from benchmarks.growing.report import table
from benchmarks.shapes import SHAPES

OURS = Contender("ours", "ours", "tests.benchmarks.growing_contender", ("quick",), ())
PEER = Contender("peer", "peer", "tests.benchmarks.growing_contender", ("forgetful",), (), is_peer=True)
SLOW = Contender("slow", "slow", "tests.benchmarks.growing_contender", ("slow",), (), is_peer=True)


def curve_of(speeds, contenders=(OURS, PEER)):
    points = [Point(size, {"batch": {"batch_size": 2, "length": size}}, 2 * size) for size in (200, 300, 400)]
    return Curve("length", "Training", "length", "tokens/s", "benchmarks.growing.worker", list(contenders), points, speeds)


def test_points():
    by_length = training_by_length([], SHAPES["tiny"], [512, 64], tokens=2048)
    assert by_length.sizes == [64, 512]
    assert by_length.points[0] == Point(64, {"batch": {"batch_size": 32, "length": 64}}, 2048)
    by_output = decoding_by_length([], SHAPES["tiny"], [16, 32], beam=4, batch=8)
    assert by_output.points[1] == Point(32, {"job": {"workload": "32", "beam_size": 4, "batch_size": 8}}, 256)
    by_batch = decoding_by_batch([], SHAPES["tiny"], [1, 64], beam=4, length=32)
    assert by_batch.points[1] == Point(64, {"job": {"workload": "32", "beam_size": 4, "batch_size": 64}}, 2048)


def test_a_table_has_ratios_and_dashes():
    curve = curve_of({"ours": {200: 3000.0, 300: 2000.0}, "peer": {200: 1500.0, 400: 500.0}})
    assert table(curve).splitlines() == [
        "| length | ours | peer | times best peer |",
        "| ---: | ---: | ---: | ---: |",
        "| 200 | 3,000 | 1,500 | 2.00 |",
        "| 300 | 2,000 | - | - |",
        "| 400 | - | 500 | - |",
    ]


def test_the_fastest_run_of_all_modes_counts():
    curve = curve_of({})
    for seconds in ([4.0, 2.0], [], [3.0]):
        curve.add(OURS, curve.points[0], seconds)
    curve.add(PEER, curve.points[0], [])
    assert curve.speeds == {"ours": {200: 200.0}, "peer": {}}
    assert curve.ratio(200) is None


def test_who_cannot_do_a_size_is_left_out_from_there_on(monkeypatch, capsys):
    monkeypatch.setattr(BoundedWorker, "bounded", quick_about_slow(BoundedWorker.bounded))
    curve = curve_of({}, (OURS, PEER, SLOW))
    options = SimpleNamespace(shape="tiny", threads=1, rounds=1, seconds=1.0, longest=1.5, limit=60.0)
    measure(curve, options, Console(width=140))
    assert curve.speeds == {
        "ours": {200: 800.0, 300: 1200.0, 400: 1600.0},
        "peer": {200: 400.0, 300: 600.0},
        "slow": {200: 200.0},
    }
    said = capsys.readouterr().out
    assert "peer, forgetful, is left out: MemoryError: no room for this length" in said
    assert said.count("slow, slow, is left out: no answer within 1 s") == 2


def quick_about_slow(bounded):
    """Gives up soon on the contender that hangs, once it is ready, and never on those that only start slowly."""

    def shorter(worker, get_answer):
        worker.seconds = 1.0 if worker.contender is SLOW and get_answer != worker.read_answer else 60.0
        return bounded(worker, get_answer)

    return shorter


def test_the_command_writes_tables_and_pictures(monkeypatch, tmp_path, capsys):
    pytest.importorskip("matplotlib")

    def pretend(curve, options, console):
        for number, contender in enumerate(curve.contenders, 1):
            for point in curve.points[: max(0, 3 - number)]:
                curve.add(contender, point, [number * point.size / 100])

    monkeypatch.setattr(growth, "measure", pretend)
    monkeypatch.setattr(growth, "installed", lambda contenders, console: contenders)
    page = tmp_path / "page.md"
    for _ in range(2):
        growth.main(["--lengths", "64", "128", "256", "--outputs", "16", "32", "--write", str(page)])
    text = page.read_text(encoding="utf8")
    assert text.count("## Growing sequences and batches") == 1
    assert "| 64 | 3,200 | 1,600 | - | - | 2.00 |" in text
    assert "| 256 | - | - | - | - | - |" in text
    names = ["growth-batch.png", "growth-length.png", "growth-output.png"]
    assert sorted(path.name for path in (tmp_path / "figures").iterdir()) == names
    assert all(f"](figures/{name})" in text for name in names)
    assert all((tmp_path / "figures" / name).read_bytes().startswith(b"\x89PNG") for name in names)
