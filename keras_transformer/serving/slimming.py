"""Makes the graph of a SavedModel smaller, without changing what it computes. Imported when it is first needed.

A server reads and optimizes all functions of a model before its first answer, and that takes longer the more nodes they have.
More than half of what tracing leaves behind computes something that another node of the same function computes as well: above
all, sizes of tensors and small constants. Others turn a tensor round and back (`detours`).
"""

from pathlib import Path

from tensorflow.core.protobuf import saved_model_pb2  # noqa: TID251
from tensorflow.python.framework import op_def_registry  # noqa: TID251
from tensorflow.python.saved_model import fingerprinting_utils  # noqa: TID251

from keras_transformer.serving.detours import drop_detours
from keras_transformer.serving.graph_checks import is_scalar
from keras_transformer.serving.graph_order import in_order, node_of
from keras_transformer.serving.whole_loops import keep_loops_whole

# They write into the memory of a tensor, so each needs one of its own.
IN_PLACE = ("Empty", "InplaceUpdate")
SHAPES = "_output_shapes"  # An attribute that TensorFlow finds out by itself when it loads a graph.


def slim_saved_model(folder: Path, device: str = "gpu"):
    """Rewrites a SavedModel with fewer nodes.

    Args:
        folder: The folder of `saved_model.pb`.
        device: `"cpu"` if no GPU will run it: its loops are then kept whole.
    """
    path = Path(folder) / "saved_model.pb"
    model = saved_model_pb2.SavedModel.FromString(path.read_bytes())
    library = model.meta_graphs[0].graph_def.library
    for function in library.function:
        drop_detours(function)
        slim_function(function)
    if device == "cpu":
        keep_loops_whole(library)
    path.write_bytes(model.SerializeToString(deterministic=True))
    fingerprinting_utils.write_fingerprint(str(folder))


def slim_function(function):
    """Merges the nodes of a FunctionDef that compute the same, and drops those that nobody needs."""
    nodes = {node.name: node for node in function.node_def}
    heirs, known = {}, {}
    for node in in_order(nodes):
        inputs = [renamed(tensor, heirs) for tensor in node.input]
        controls = sorted({tensor for tensor in inputs if tensor.startswith("^")})
        node.ClearField("input")
        node.input.extend([tensor for tensor in inputs if not tensor.startswith("^")] + controls)
        if is_pure(node):
            heirs[node.name] = known.setdefault(identity(node), node.name)
    for results in (function.ret, function.control_ret):
        for name, tensor in results.items():
            results[name] = renamed(tensor, heirs)
    needed = needed_nodes(nodes, [*function.ret.values(), *function.control_ret.values()])
    kept = [without_hints(node) for name, node in nodes.items() if name in needed]
    function.ClearField("node_def")
    function.node_def.extend(kept)


def renamed(tensor: str, heirs: dict[str, str]) -> str:
    """Returns the name of the same tensor as the node has it that its own node was merged into."""
    name = node_of(tensor)
    return tensor.replace(name, heirs.get(name, name), 1)


def is_pure(node) -> bool:
    """Tells whether a node does nothing but compute its outputs from its inputs."""
    operation = op_def_registry.get(node.op)
    if operation is None or operation.is_stateful or node.op in IN_PLACE:
        return False
    return not any(attribute.HasField("func") for attribute in node.attr.values())


def identity(node) -> tuple:
    """Returns what two nodes have in common that compute the same."""
    attributes = {name: value.SerializeToString(deterministic=True) for name, value in node.attr.items() if name != SHAPES}
    return node.op, node.device, tuple(node.input), tuple(sorted(attributes.items()))


def needed_nodes(nodes: dict, results: list[str]) -> set[str]:
    """Returns the names of the nodes that results need, or that do more than compute."""
    waiting = [node_of(tensor) for tensor in results] + [name for name, node in nodes.items() if not is_pure(node)]
    needed = set()
    while waiting:
        name = waiting.pop()
        if name in nodes and name not in needed:
            needed.add(name)
            waiting += map(node_of, nodes[name].input)
    return needed


def without_hints(node):
    """Returns a copy of a node without what a server does not need; `check_graph` still has to know single numbers."""
    copy = type(node)()
    copy.CopyFrom(node)
    if not is_scalar(node.attr[SHAPES]):
        copy.attr.pop(SHAPES, None)
    copy.ClearField("experimental_debug_info")
    return copy
