"""The capacity plan: its arithmetic, and that the page says what the command prints."""

import re
from pathlib import Path

import pytest

from training import capacity
from training.capacity import DEVICES, PLANS, Device, Plan

PAGE = Path(__file__).parents[2] / "docs" / "scaling.md"


def test_operations_of_a_small_model_counted_by_hand():
    plan = Plan("one layer", layers=1, model_dim=2, feed_forward_dim=3, updates=1, tokens_per_update=4)
    # Two positions. Encoder: kernels of 4 x 4 + 2 x 6 parameters, 2 operations each; attention 4 x 2 for two positions each.
    assert capacity.encoder_operations(plan, 2) == 2 * 2 * 28 + 4 * 2 * 2 * 2
    # Decoder: 6 x 4 + 12 parameters and the logits for two tokens, attention to 2 + 2 positions, keys and values of two.
    wanted = 2 * 2 * (36 + 2 * capacity.VOCABULARY) + 4 * 2 * 2 * 4 + 2 * 2 * 2 * 4
    assert capacity.decoder_operations(plan, 2, 2) == wanted
    whole = capacity.encoder_operations(plan, 2) + wanted
    assert capacity.training_operations(plan, 2) == 3 * whole * 2  # Four tokens are two sentences.


def test_operations_are_about_six_for_each_parameter_and_token():
    parameters = {"base": 63_082_496, "big": 214_245_376}
    for plan in PLANS:
        ratio = capacity.training_operations(plan) / (6 * parameters[plan.name] * plan.tokens)
        assert 1 < ratio < 1.03  # Attention is little of it.


def test_a_beam_costs_its_steps_and_not_the_source_again():
    base = PLANS[0]
    one, two, three = (capacity.translation_operations(base, beam_size) for beam_size in (1, 2, 3))
    assert three - two == two - one < one
    assert one == capacity.encoder_operations(base, 29) + capacity.decoder_operations(base, 29, 29)


def test_hours_follow_from_peak_and_share():
    device = Device("test", peak=1.0, utilization=0.5, bandwidth=0, source="")
    assert capacity.training_hours(PLANS[0], device) == pytest.approx(capacity.training_operations(PLANS[0]) / 0.5e12 / 3600)


def test_servers_are_bound_by_memory_in_small_batches():
    base, device = PLANS[0], DEVICES[1]
    assert capacity.sentences_per_second(base, device, 2, 4) == pytest.approx(
        2 * capacity.sentences_per_second(base, device, 1, 4)
    )
    assert capacity.sentences_per_second(base, device, 4096, 4) < 4096 * capacity.sentences_per_second(base, device, 1, 4)


def test_the_page_says_what_the_command_prints(capsys):
    assert capacity.main([]) == 0
    for printed in capsys.readouterr().out.strip().split("\n\n"):
        assert printed in PAGE.read_text(encoding="utf8")


def test_a_device_of_ones_own(capsys):
    assert capacity.main(["--peak", "125", "--utilization", "0.4", "--bandwidth", "900"]) == 0
    assert "| base | 2.5 billion | 9.5e+17 | yours | 40% (given) | 5.3 |" in capsys.readouterr().out
    assert capacity.main(["--peak", "125"]) == 2
    assert "--utilization above 0 and at most 1" in capsys.readouterr().err


def test_commands_of_the_page_exist():
    modules = set(re.findall(r"python -m ([\w.]+)", PAGE.read_text(encoding="utf8")))
    assert {"training.launch", "training.capacity", "benchmarks.scale"} <= modules
    for module in modules:
        assert (PAGE.parents[1] / Path(*module.split(".")).with_suffix(".py")).is_file()
