import keras
import pytest

from tests.mutants import ALL, MUTANTS, NEAR, failing_test

# In `make test` one mutant meets the tests of its own layer; in `make prove` each meets the suite until the first failure.
SAMPLE = {"sine and cosine swapped": (("tests/layers/test_sinusoidal_positional_encoding.py",),)}


@pytest.mark.skipif(keras.backend.backend() != "torch", reason="one backend is enough, and this one starts quickly")
@pytest.mark.proof(
    "Mutants: without 1/sqrt(d_k), causal mask, sine and cosine or cross-attention's padding mask, the suite fails"
)
@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_the_suite_catches(mutant, size, seen):
    selections = size(SAMPLE.get(mutant.name, ()), full=(NEAR, ALL))
    if not selections:
        pytest.skip("runs in `make prove`")
    test = failing_test(mutant, *selections)
    assert test is not None, f"{mutant.name} survives"
    seen(f"{mutant.name}: caught by {test}")
