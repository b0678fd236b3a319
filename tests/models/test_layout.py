"""A Transformer that several devices hold together."""

import json
import os
import subprocess
import sys
from pathlib import Path

import keras
import pytest

import keras_transformer as kt
from keras_transformer.models.layout import check_divisible, layout_map

ROOT = Path(__file__).parents[2]
QUICK_XLA = "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true"


def mesh(names=("batch", "model")):
    return keras.distribution.DeviceMesh((1, 1), names, devices=["cpu:0"])


def make_model(**options):
    sizes = {"vocabulary_size": 40, "model_dim": 16, "feed_forward_dim": 32, "num_heads": 4}
    return kt.Transformer(kt.TransformerConfig(**{**sizes, "num_encoder_layers": 1, "num_decoder_layers": 1, **options}))


def axes_of(model):
    layouts = layout_map(mesh())
    return {variable.path: layouts[variable.path] and layouts[variable.path].axes for variable in model.variables}


def test_what_is_split_along_which_axis():
    found = axes_of(make_model(output_bias=True))
    for attention in ("encoder_block_0/self_attention", "decoder_block_0/self_attention", "decoder_block_0/cross_attention"):
        for part in ("query", "key", "value"):
            assert found[f"{attention}/{part}/kernel"] == (None, "model")
            assert found[f"{attention}/{part}/bias"] == ("model",)
        assert found[f"{attention}/output/kernel"] == ("model", None)
        assert found[f"{attention}/output/bias"] is None
    assert found["decoder_block_0/feed_forward/hidden/kernel"] == (None, "model")
    assert found["decoder_block_0/feed_forward/output/kernel"] == ("model", None)
    assert found["token_embedding/embeddings"] == ("model", None)
    assert found["logits/bias"] == ("model",)


@pytest.mark.parametrize(
    "options", [{"tie": "all"}, {"tie": "decoder"}, {"tie": "none"}, {"norm": "pre", "positions": "learned"}]
)
def test_all_kernels_and_embeddings_are_split_and_fit_their_variables(options):
    model = make_model(**options)
    found = axes_of(model)
    for variable in model.weights:
        axes = found[variable.path]
        is_matrix = variable.path.endswith(("kernel", "embeddings")) and "positions" not in variable.path
        assert (axes is not None and axes.count("model") == 1) if is_matrix else axes is None or len(variable.shape) == 1
        assert axes is None or len(axes) == len(variable.shape)


def test_a_mesh_without_an_axis_for_the_model():
    with pytest.raises(ValueError, match=r"needs an axis for the model.*Received: axis_names=\('batch', 'rows'\)"):
        layout_map(mesh(("batch", "rows")))


def test_models_that_cannot_be_divided():
    config = make_model(vocabulary_size=41, num_heads=(4, 2)).config
    check_divisible(config, 1)
    with pytest.raises(ValueError) as caught:
        check_divisible(config, 4)
    assert "decoder_num_heads=2" in str(caught.value) and "target_vocabulary_size=41" in str(caught.value)
    assert "encoder_num_heads" not in str(caught.value)


@pytest.mark.skipif(keras.backend.backend() != "jax", reason="model parallelism is JAX's")
@pytest.mark.proof("A model on a 2x2 mesh of devices: the same logits, the same weights after 20 updates, half of it on each")
def test_a_mesh_of_four_devices(seen):
    flags = f"{QUICK_XLA} --xla_force_host_platform_device_count=4"
    environment = {**os.environ, "KERAS_BACKEND": "jax", "XLA_FLAGS": flags, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "tests.models.divided_model"]
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600)
    assert ran.returncode == 0, ran.stderr
    found = json.loads(ran.stdout.splitlines()[-1])
    seen(
        f"logits differ by {found['logits']:.1e}, weights after 20 updates by {found['weights']:.1e} of their norm; "
        f"devices hold {', '.join(f'{share:.0%}' for share in found['shares'])} of what is split, {found['whole']:.0%} of all"
    )
    assert found["logits"] < 1e-4 and found["weights"] < 1e-4 and found["moments"] < 1e-4
    assert found["shares"] == pytest.approx([0.5] * 4)
    assert found["moment_shares"] == pytest.approx([0.5] * 4)
    assert found["whole"] < 0.55
