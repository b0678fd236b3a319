"""The fused Adam: the numbers of Keras' own, in every setting that `model.fit` has."""

import keras
import numpy as np
import pytest

from keras_transformer.optimizers import FusedAdam
from tests.gradients import numpy_of

OPTIONS = {
    "plain": {},
    "paper": {"beta_2": 0.98, "epsilon": 1e-9},
    "decay and clipping": {"weight_decay": 0.01, "global_clipnorm": 0.1},
    "average": {"use_ema": True, "ema_momentum": 0.9},
    "accumulation": {"gradient_accumulation_steps": 2},
    "amsgrad": {"amsgrad": True},
    "schedule": {"learning_rate": keras.optimizers.schedules.PolynomialDecay(0.1, 5)},
}


@pytest.mark.parametrize("jit_compile", [False, True])
@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_gives_the_weights_of_keras_adam(options, jit_compile):
    if jit_compile and keras.backend.backend() == "torch":
        pytest.skip("torch.compile takes minutes")
    ours, theirs = (trained(optimizer, options, jit_compile) for optimizer in (FusedAdam, keras.optimizers.Adam))
    for our_weight, their_weight in zip(ours.variables, theirs.variables, strict=True):
        np.testing.assert_allclose(numpy_of(our_weight), numpy_of(their_weight), atol=2e-6)


def test_the_rows_of_an_embedding_are_weights_like_any_other():
    """Row 2 occurs twice in a batch, row 0 never; the gradient of the sum is the number of occurrences."""
    model = keras.Sequential([keras.layers.Embedding(4, 1, embeddings_initializer="zeros")])
    model.compile(FusedAdam(0.1, beta_1=0.5, beta_2=0.5, epsilon=1.0), loss=lambda _, outputs: keras.ops.sum(outputs))
    for ids in ([[1, 2, 2]], [[3, 2, 2]]):
        model.train_on_batch(np.array(ids), np.zeros((1, 3, 1)))

    expected, momentum, velocity = np.zeros((3, 4))
    for step, gradient in enumerate(np.array([[0, 1, 2, 0], [0, 0, 2, 1]]), start=1):
        momentum += 0.5 * (gradient - momentum)
        velocity += 0.5 * (gradient**2 - velocity)
        expected -= 0.1 * np.sqrt(1 - 0.5**step) / (1 - 0.5**step) * momentum / (np.sqrt(velocity) + 1.0)
    np.testing.assert_allclose(numpy_of(model.layers[0].embeddings)[:, 0], expected, atol=1e-6)


def test_half_precision_with_loss_scaling():
    keras.config.set_dtype_policy("mixed_float16")
    try:
        ours, theirs = (trained(optimizer, {}, jit_compile=False) for optimizer in (FusedAdam, keras.optimizers.Adam))
    finally:
        keras.config.set_dtype_policy("float32")
    assert type(ours.optimizer).__name__ == "LossScaleOptimizer"
    for our_weight, their_weight in zip(ours.variables, theirs.variables, strict=True):
        np.testing.assert_allclose(numpy_of(our_weight), numpy_of(their_weight), atol=2e-6)


def test_is_saved_with_its_state(tmp_path):
    model = trained(FusedAdam, {"beta_2": 0.98}, jit_compile=False)
    model.save(tmp_path / "model.keras")
    restored = keras.saving.load_model(tmp_path / "model.keras")
    assert isinstance(restored.optimizer, FusedAdam)
    assert restored.optimizer.get_config() == model.optimizer.get_config()
    for before, after in zip(model.optimizer.variables, restored.optimizer.variables, strict=True):
        np.testing.assert_array_equal(numpy_of(after), numpy_of(before))


@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="only TensorFlow has tf.distribute")
def test_under_a_mirrored_strategy():
    import tensorflow as tf

    with tf.distribute.MirroredStrategy(["CPU:0"]).scope():
        mirrored = trained(FusedAdam, {}, jit_compile=False)
    for alone, with_strategy in zip(trained(FusedAdam, {}, jit_compile=False).variables, mirrored.variables, strict=True):
        np.testing.assert_allclose(numpy_of(with_strategy), numpy_of(alone), atol=2e-6)


def trained(optimizer_class, options, jit_compile) -> keras.Model:
    """Fits a small model for a few steps."""
    keras.utils.set_random_seed(3)
    random = np.random.default_rng(3)
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(5, activation="tanh"), keras.layers.Dense(2)])
    model.compile(optimizer_class(**{"learning_rate": 0.05, **options}), "mse", jit_compile=jit_compile)
    model.fit(random.normal(size=(12, 4)), random.normal(size=(12, 2)), batch_size=4, epochs=2, shuffle=False, verbose=0)
    return model
