"""Takes detours out of a graph. Imported when it is first needed.

Attention is written for keys `(B, S, N, H)`, and caches have the heads first: a cache is turned round to be read, and turned
back to be multiplied. When TensorFlow optimizes a graph thoroughly it finds that out, but a server should not take the time.
"""

from tensorflow import make_ndarray  # noqa: TID251

from keras_transformer.serving.graph_order import in_order, node_of

PASSED_ON = ("Identity", "StopGradient")  # What a node of these gives is what it takes.
FACTORS = ((0, "adj_x"), (1, "adj_y"))  # Of a product: the input, and the attribute that says whether it is to be transposed.


def drop_detours(function):
    """Removes nodes that change nothing, transposes that undo each other and those of factors, and takes two reshapes in one.

    Args:
        function: A FunctionDef. The nodes that nobody needs any more stay in it.
    """
    nodes = {node.name: node for node in function.node_def}
    originals = {}  # The tensor that another one is equal to.
    for node in in_order(nodes):
        for place, tensor in enumerate(node.input):
            node.input[place] = originals.get(tensor, tensor)
        if node.op in PASSED_ON and len(node.input) == 1:
            originals[f"{node.name}:output:0"] = node.input[0]
        elif node.op == "Reshape":
            before = nodes.get(node_of(node.input[0]))
            if before is not None and before.op == "Reshape":
                node.input[0] = before.input[0]
        elif node.op == "Transpose":
            before = nodes.get(node_of(node.input[0]))
            first, second = order_of(before, nodes), order_of(node, nodes)
            if first and second and [first[axis] for axis in second] == sorted(first):
                originals[f"{node.name}:y:0"] = before.input[0]
        elif node.op == "BatchMatMulV2":
            for place, attribute in FACTORS:
                factor = nodes.get(node_of(node.input[place]))
                if swaps_last_axes(order_of(factor, nodes)):
                    node.input[place] = factor.input[0]
                    node.attr[attribute].b = not node.attr[attribute].b
    for name, tensor in function.ret.items():
        function.ret[name] = originals.get(tensor, tensor)


def order_of(node, nodes: dict) -> list[int] | None:
    """Returns the order in which a transpose puts the axes; `None` if it is not known, or the node is something else."""
    if node is None or node.op != "Transpose":
        return None
    order = nodes.get(node_of(node.input[1]))
    return make_ndarray(order.attr["value"].tensor).tolist() if order is not None and order.op == "Const" else None


def swaps_last_axes(order: list[int] | None) -> bool:
    """Tells whether an order of axes is that of a matrix' transpose."""
    if order is None or len(order) < 2:
        return False
    *leading, last, last_but_one = order
    return [*leading, last_but_one, last] == sorted(order)
