"""Smaller graphs that compute the same."""

import keras
import numpy as np
import pytest

if keras.backend.backend() != "tensorflow":
    pytest.skip("exports are made on TensorFlow", allow_module_level=True)

import tensorflow as tf

from keras_transformer.serving.graph_checks import all_nodes, read_graph
from keras_transformer.serving.slimming import slim_saved_model


class Module(tf.Module):
    """Sums that are computed twice, a variable that changes in between, a loop, and buffers that are written to."""

    def __init__(self):
        super().__init__()
        self.count = tf.Variable(0.0)

    @tf.function(input_signature=[tf.TensorSpec([None, 3], tf.float32)])
    def run(self, x):
        before = self.count.read_value()
        self.count.assign_add(1.0)
        after = self.count.read_value()
        twice = tf.reduce_sum(x) * 2.0 + tf.reduce_sum(x) * 2.0
        buffers = [tf.raw_ops.Empty(shape=[2, 3], dtype=tf.float32, init=True) for _ in range(2)]
        first = tf.raw_ops.InplaceUpdate(x=buffers[0], i=[0], v=tf.ones((1, 3)))
        second = tf.raw_ops.InplaceUpdate(x=buffers[1], i=[1], v=tf.ones((1, 3)))

        def body(step, y):
            return step + 1, y + tf.cast(tf.shape(x)[0], tf.float32) * tf.cast(tf.shape(x)[0], tf.float32)

        _, looped = tf.while_loop(lambda step, y: step < 3, body, (0, tf.reduce_max(x)))
        return {"before": before, "after": after, "twice": twice, "looped": looped, "first": first, "second": second}


class Loop(tf.Module):
    """A loop with a branch in it, a product with a bias, and values that are passed on as they are."""

    def __init__(self):
        super().__init__()
        self.kernel, self.bias = tf.Variable(tf.eye(3)), tf.Variable([1.0, 2.0, 3.0])

    @tf.function(input_signature=[tf.TensorSpec([None, 3], tf.float32)], autograph=False)
    def run(self, x):
        kernel, bias = tf.convert_to_tensor(self.kernel), tf.convert_to_tensor(self.bias)

        def body(step, y):
            y = tf.nn.bias_add(tf.matmul(tf.identity(tf.stop_gradient(y)), kernel), bias)
            return step + 1, tf.cond(step > 1, lambda: -y, lambda: tf.identity(y))

        return {"y": tf.while_loop(lambda step, y: step < 4, body, (0, x))[1]}


def test_loops_stay_whole_where_there_is_only_a_cpu(tmp_path):
    module, x = Loop(), tf.constant([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    expected = module.run(x)["y"].numpy()
    for device, count in (("gpu", 2), ("cpu", 0)):
        folder = tmp_path / device
        tf.saved_model.save(module, str(folder), signatures=module.run)
        slim_saved_model(folder, device)
        graph = read_graph(folder)
        assert sum("_lower_using_switch_merge" in node.attr for node in all_nodes(graph)) == count
        assert "StopGradient" not in operations(folder)
        placed = {node.op for node in all_nodes(graph) if node.device == "/device:CPU:0"}
        assert placed & {"MatMul", "BiasAdd", "Neg"} == ({"MatMul", "BiasAdd", "Neg"} if device == "cpu" else set())
        found = tf.saved_model.load(str(folder)).signatures["serving_default"](x)
        np.testing.assert_array_equal(found["y"], expected)


def operations(folder) -> list[str]:
    return [node.op for node in all_nodes(read_graph(folder))]


def test_equal_nodes_become_one_and_results_stay(tmp_path):
    module, x = Module(), tf.constant([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    tf.saved_model.save(module, str(tmp_path), signatures=module.run)
    before = operations(tmp_path)
    slim_saved_model(tmp_path)
    after = operations(tmp_path)
    assert after.count("Sum") == 1 < before.count("Sum")
    assert len(after) < len(before)
    for kept in ("Empty", "InplaceUpdate", "ReadVariableOp", "AssignAddVariableOp"):
        assert after.count(kept) == before.count(kept)
    found = tf.saved_model.load(str(tmp_path)).signatures["serving_default"](x)
    assert {name: found[name].numpy() for name in ("before", "after", "twice", "looped")} == {
        "before": 0.0,
        "after": 1.0,
        "twice": 84.0,
        "looped": 18.0,
    }
    assert found["first"].numpy().tolist() == [[1.0] * 3, [0.0] * 3]
    assert found["second"].numpy().tolist() == [[0.0] * 3, [1.0] * 3]
    assert operations(tmp_path) == after
    slim_saved_model(tmp_path)
    assert operations(tmp_path) == after, "There was more to merge"
    tf.saved_model.experimental.read_fingerprint(str(tmp_path))


class Attention(tf.Module):
    """Keys that are turned round and back before they are multiplied, as attention does with those of a cache."""

    @tf.function(input_signature=[tf.TensorSpec([None, None, 2, 3], tf.float32), tf.TensorSpec([None, 2, None, 3], tf.float32)])
    def run(self, query, key):
        read = tf.transpose(key, (0, 2, 1, 3))  # (B, L, N, H)
        turned_back = tf.transpose(read, (0, 2, 1, 3))  # (B, N, L, H)
        query = tf.reshape(tf.reshape(query, (-1, 3)), tf.shape(query))
        scores = tf.matmul(tf.transpose(query, (0, 2, 1, 3)), tf.transpose(turned_back, (0, 1, 3, 2)))  # (B, N, T, L)
        sums = tf.matmul(tf.transpose(scores, (0, 1, 3, 2)), tf.transpose(scores, (0, 1, 3, 2)), transpose_a=True)
        turned_twice = tf.transpose(tf.transpose(key, (1, 2, 3, 0)), (1, 2, 3, 0))  # Not the same as before.
        return {"scores": scores, "sums": sums, "same": turned_back, "other": turned_twice}


def test_detours_are_dropped_and_results_stay(tmp_path):
    module = Attention()
    query, key = tf.random.normal((4, 5, 2, 3)), tf.random.normal((4, 2, 5, 3))
    expected = module.run(query, key)
    tf.saved_model.save(module, str(tmp_path), signatures=module.run)
    slim_saved_model(tmp_path)
    left = operations(tmp_path)
    assert left.count("Transpose") == 3  # The query's heads, and the two that make something else.
    assert left.count("Reshape") == 1
    found = tf.saved_model.load(str(tmp_path)).signatures["serving_default"](query=query, key=key)
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, atol=1e-6)
