from benchmarks.contenders import CONTENDERS
from benchmarks.train_step import modes_of


def test_xla_is_left_away_where_there_is_another_way():
    modes = {name: modes_of(contender, is_compiled=False) for name, contender in CONTENDERS.items()}
    assert modes["ours-jax"] == ["xla"]
    assert modes["ours-tensorflow"] and all("xla" not in ways for name, ways in modes.items() if name != "ours-jax")
    assert all(modes_of(contender, is_compiled=True) == list(contender.modes) for contender in CONTENDERS.values())
