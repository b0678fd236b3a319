"""Adding up the times of a trace."""

import pytest

from benchmarks.decode_profile import OTHER, shares_of, times_of_line


def test_what_runs_within_another_is_taken_from_it():
    second = 10**12
    events = [
        (5 * second, 2 * second, "Mul"),
        (0, 10 * second, "Run"),
        (1 * second, 3 * second, "block/dense:_MklNativeFusedMatMul"),
    ]
    assert times_of_line(events) == {"Run": 5.0, "Mul": 2.0, "_MklNativeFusedMatMul": 3.0}


def test_shares_leave_out_who_waits():
    shares = shares_of({"Run": 100.0, "_MklNativeFusedMatMul": 2.0, "MatMul": 1.0, "Mul": 0.5, "Cast": 0.5})
    assert shares["products with weights"] == pytest.approx(0.75)
    assert shares["softmax, layer normalization, residuals"] == shares[OTHER] == pytest.approx(0.125)
    assert sum(shares.values()) == pytest.approx(1.0)
