"""The fused Adam: the numbers of Keras' own, in every setting that `model.fit` has; and the optimizer of the paper."""

import keras
import numpy as np
import pytest

from keras_transformer.optimizers import FusedAdam, paper_adam
from keras_transformer.schedules import InverseSquareRootSchedule, WarmupSchedule
from tests.gradients import numpy_of

COMPILED = keras.backend.backend() == "jax"  # Where step by step is slowest.
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


# Accumulation.


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"use_ema": True, "ema_momentum": 0.7},
        {"weight_decay": 0.01, "global_clipnorm": 0.1},
        {"use_ema": True, "clipnorm": 0.1},
    ],
    ids=["plain", "average", "decay and clipping", "average and clipping"],
)
def test_three_batches_make_the_update_of_one(options):
    """With the schedule of the paper and, at the end, with the moving average of the weights."""
    arguments = {"model_dim": 4, "warmup_steps": 2, **options}
    in_one = fitted(paper_adam(**arguments), batch_size=12)
    in_three = fitted(paper_adam(**arguments, batches_per_update=3), batch_size=4)
    assert int(numpy_of(in_three.optimizer.iterations)) == int(numpy_of(in_one.optimizer.iterations)) == 5
    for one, three in zip(in_one.trainable_variables, in_three.trainable_variables, strict=True):
        np.testing.assert_allclose(numpy_of(three), numpy_of(one), atol=2e-6)


def test_the_moving_average_is_in_the_model_after_fit():
    """Worked out from the weights after each of five updates."""
    weights = []
    note = keras.callbacks.LambdaCallback(on_epoch_end=lambda epoch, logs: weights.append(weights_of(model)))
    model = small_model()
    fitted(paper_adam(learning_rate=0.1, use_ema=True, ema_momentum=0.7), 12, model, [note])
    expected = weights[0]
    for later in weights[1:]:
        expected = [0.7 * average + 0.3 * weight for average, weight in zip(expected, later, strict=True)]
    for found, average in zip(model.trainable_variables, expected, strict=True):
        np.testing.assert_allclose(numpy_of(found), average, atol=1e-6)


def test_the_moving_average_can_be_validated():
    model, data = small_model(), some_data()
    model.compile(paper_adam(learning_rate=0.1, use_ema=True, batches_per_update=2), "mse", jit_compile=COMPILED)
    swap = keras.callbacks.SwapEMAWeights()
    history = model.fit(*data, batch_size=3, validation_data=data, epochs=2, verbose=0, callbacks=[swap], shuffle=False)
    assert history.history["val_loss"][-1] == pytest.approx(model.evaluate(*data, verbose=0), rel=1e-5)


# The optimizer of the paper.


def test_the_numbers_of_the_paper():
    optimizer = paper_adam()
    assert (optimizer.beta_1, optimizer.beta_2, optimizer.epsilon) == (0.9, 0.98, 1e-9)
    assert float(numpy_of(optimizer.learning_rate)) == pytest.approx(512**-0.5 * 4000**-1.5, rel=1e-6)
    assert optimizer.gradient_accumulation_steps is None


def test_options_reach_the_optimizer():
    optimizer = paper_adam(256, 100, 2.0, 4, beta_2=0.999, clipnorm=1.0, use_ema=True, ema_momentum=0.5)
    assert (optimizer.beta_2, optimizer.clipnorm, optimizer.use_ema, optimizer.ema_momentum) == (0.999, 1.0, True, 0.5)
    assert optimizer.gradient_accumulation_steps == 4
    schedule = keras.saving.deserialize_keras_object(optimizer.get_config()["learning_rate"])
    assert schedule.get_config() == WarmupSchedule(256, 100, 2.0, 4).get_config()


def test_another_learning_rate():
    assert float(numpy_of(paper_adam(learning_rate=0.25).learning_rate)) == 0.25
    optimizer = paper_adam(learning_rate=InverseSquareRootSchedule(0.005, 10, steps_per_update=2), batches_per_update=2)
    assert float(numpy_of(optimizer.learning_rate)) == pytest.approx(0.0005, rel=1e-6)


def test_the_optimizer_of_the_paper_is_saved_with_a_model(tmp_path):
    model = fitted(paper_adam(model_dim=4, warmup_steps=2, batches_per_update=2, use_ema=True), batch_size=4)
    model.save(tmp_path / "model.keras")
    restored = keras.saving.load_model(tmp_path / "model.keras").optimizer
    assert restored.get_config() == model.optimizer.get_config()
    for before, after in zip(model.optimizer.variables, restored.variables, strict=True):
        np.testing.assert_array_equal(numpy_of(after), numpy_of(before))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"batches_per_update": 0}, "`batches_per_update` must be above 0"),
        ({"gradient_accumulation_steps": 4}, "Say `batches_per_update` instead"),
        ({"batches_per_update": 2, "learning_rate": WarmupSchedule(8)}, "learning_rate.steps_per_update=1"),
        ({"batches_per_update": 2, "use_ema": True, "ema_overwrite_frequency": 3}, "Leave out `ema_overwrite_frequency`"),
    ],
)
def test_impossible_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        paper_adam(**arguments)


def small_model() -> keras.Model:
    keras.utils.set_random_seed(3)
    return keras.Sequential([keras.Input((4,)), keras.layers.Dense(5, activation="tanh"), keras.layers.Dense(2)])


def some_data() -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(3)
    return random.normal(size=(12, 4)), random.normal(size=(12, 2))


def weights_of(model) -> list[np.ndarray]:
    if keras.backend.backend() == "jax":
        model.jax_state_sync()
    return [numpy_of(weight).copy() for weight in model.trainable_variables]


def fitted(optimizer, batch_size, model=None, callbacks=()) -> keras.Model:
    """Fits a small model for five epochs of twelve rows."""
    model = model or small_model()
    model.compile(optimizer, "mse", jit_compile=COMPILED)
    model.fit(*some_data(), batch_size=batch_size, epochs=5, shuffle=False, verbose=0, callbacks=list(callbacks))
    return model


def trained(optimizer_class, options, jit_compile) -> keras.Model:
    """Fits a small model for a few steps."""
    model = small_model()
    model.compile(optimizer_class(**{"learning_rate": 0.05, **options}), "mse", jit_compile=jit_compile)
    model.fit(*some_data(), batch_size=4, epochs=2, shuffle=False, verbose=0)
    return model
