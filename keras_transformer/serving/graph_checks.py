"""Does a SavedModel consist of operations that servers have, and that a GPU can run? Imported when it is first needed."""

import functools
from collections.abc import Iterator
from importlib import resources
from pathlib import Path

import tensorflow as tf  # noqa: TID251
from tensorflow.core.protobuf import saved_model_pb2  # noqa: TID251
from tensorflow.python.framework import kernels, op_def_registry  # noqa: TID251

# What the server cannot run, or what one request could make fail for all.
FORBIDDEN = ("Assert", "PyFunc", "PyFuncStateless", "EagerPyFunc", "CheckNumerics")
# Operations with functions of their own, and what a graph is made of: nothing to compute.
STRUCTURE = (
    "While",
    "StatelessWhile",
    "If",
    "StatelessIf",
    "PartitionedCall",
    "StatefulPartitionedCall",
    "NoOp",
    "Placeholder",
)
SIZES = ("Const", "Shape", "ShapeN", "Size", "Rank")


def read_graph(folder: Path):
    """Returns the GraphDef of a SavedModel."""
    model = saved_model_pb2.SavedModel.FromString((Path(folder) / "saved_model.pb").read_bytes())
    return model.meta_graphs[0].graph_def


def check_graph(graph_def):
    """Raises a `ValueError` if a server could not run a graph, or would not run its loops on a GPU.

    Args:
        graph_def: The GraphDef of a SavedModel.
    """
    for find in (unknown_operations, compiled_functions, host_operations):
        problems = list(dict.fromkeys(find(graph_def)))
        if problems:
            raise ValueError(
                f"TensorFlow Serving could not run this model as it should: {'; '.join(problems)}. Is there an operation of "
                "your own in a layer? Write it with other ones of `keras.ops`"
            )


def known_operations() -> set[str]:
    """Returns the names of the operations that all supported servers have."""
    return set(resources.files(__package__).joinpath("server_ops.txt").read_text(encoding="utf8").split())


def unknown_operations(graph_def) -> Iterator[str]:
    """Names the operations that a server does not have, and those that it must not have."""
    known = known_operations()
    for node in all_nodes(graph_def):
        if node.op.startswith("Xla") or node.op in FORBIDDEN:
            yield f"it has the operation {node.op} ({node.name})"
        elif node.op not in known:
            yield f"servers do not have the operation {node.op} ({node.name})"


def compiled_functions(graph_def) -> Iterator[str]:
    """Names what is to be compiled by XLA, which servers have switched off."""
    for function in graph_def.library.function:
        if function.attr["_XlaMustCompile"].b:
            yield f"the function {function.signature.name} has jit_compile=True"
    for node in all_nodes(graph_def):
        if node.attr["_XlaMustCompile"].b:
            yield f"{node.name} has jit_compile=True"


def all_nodes(graph_def) -> Iterator:
    """Yields the nodes of a graph and of all its functions."""
    yield from graph_def.node
    for function in graph_def.library.function:
        yield from function.node_def


def host_operations(graph_def) -> Iterator[str]:
    """Names what a GPU could not do itself in each round of a loop.

    Sizes, places that follow from sizes, and single numbers (the loop's predicate among them) are the host's; TensorFlow keeps
    them there on purpose. Everything else must have a kernel for the GPU that neither takes nor gives tensors of the host.
    """
    functions = {function.signature.name: function for function in graph_def.library.function}
    for name in loop_functions(graph_def, functions):
        yield from host_operations_of(functions[name])


def loop_functions(graph_def, functions: dict) -> set[str]:
    """Returns the names of all functions that run within loops."""
    waiting = [attr.func.name for node in all_nodes(graph_def) if "While" in node.op for attr in node.attr.values()]
    found = set()
    while waiting:
        name = waiting.pop()
        if name in functions and name not in found:
            found.add(name)
            waiting += [called for node in functions[name].node_def for called in called_functions(node)]
    return found


def called_functions(node) -> list[str]:
    """Returns the names of the functions in a node's attributes."""
    return [attr.func.name for attr in node.attr.values() if attr.HasField("func")]


def host_operations_of(function) -> Iterator[str]:
    """Names what a GPU could not do itself in a function."""
    values = Values(function)
    for node in function.node_def:
        if node.op in STRUCTURE or node.op in SIZES or values.is_size(node.name):
            continue
        kernel = gpu_kernel(node)
        if kernel is None:
            yield f"no GPU has the operation {types_of(node)}, which a loop needs ({node.name})"
            continue
        for argument, tensor in zip(argument_names(node), data_inputs(node), strict=True):
            is_on_host = argument in kernel.host_memory_arg and argument != "resource"  # The handle of a variable.
            if is_on_host and not values.is_size(tensor):
                yield f"{types_of(node)} in a loop is computed on the host ({node.name})"


class Values:
    """What is known of the tensors of a function.

    Args:
        function: A FunctionDef.
    """

    def __init__(self, function):
        self.nodes = {node.name: node for node in function.node_def}
        self.sizes = {
            argument.name: is_scalar(function.arg_attr[number].attr["_output_shapes"])
            for number, argument in enumerate(function.signature.input_arg)
        }

    def is_size(self, tensor: str) -> bool:
        """Tells whether a tensor is a single number, or follows from sizes and single numbers alone."""
        name = tensor.partition(":")[0]
        waiting = [name]
        while waiting:  # Not by recursion: graphs are deep.
            node = self.nodes.get(waiting[-1])
            if waiting[-1] in self.sizes or node is None:
                waiting.pop()
                continue
            inputs = [one.partition(":")[0] for one in data_inputs(node)]
            is_known = node.op in SIZES or is_scalar(node.attr["_output_shapes"])
            unknown = [] if is_known else [one for one in inputs if one in self.nodes and one not in self.sizes]
            if unknown:
                waiting += unknown
            else:
                is_size = bool(inputs) and all(self.sizes.get(one, False) for one in inputs)
                self.sizes[waiting.pop()] = is_known or is_size
        return self.sizes.get(name, False)


def is_scalar(shapes) -> bool:
    """Tells whether an attribute of shapes says that all outputs are single numbers."""
    shapes = shapes.list.shape
    return bool(shapes) and all(not shape.unknown_rank and not shape.dim for shape in shapes)


def data_inputs(node) -> list[str]:
    """Returns the inputs of a node that are tensors."""
    return [tensor for tensor in node.input if not tensor.startswith("^")]


def argument_names(node) -> list[str]:
    """Returns the name of the operation's argument that each input of a node is for."""
    names = []
    for argument in op_def_registry.get(node.op).input_arg:
        count = node.attr[argument.number_attr].i if argument.number_attr else 1
        count = len(node.attr[argument.type_list_attr].list.type) if argument.type_list_attr else count
        names += [argument.name] * count
    return names


def types_of(node) -> str:
    """Names an operation with the types it has in a node."""
    types = [tf.as_dtype(value.type).name for name, value in sorted(node.attr.items()) if value.type]
    return f"{node.op}[{', '.join(dict.fromkeys(types))}]"


def gpu_kernel(node):
    """Returns the kernel that a GPU would run a node with, or `None`."""
    fitting = [kernel for kernel in kernels_of(node.op) if fits(kernel, node)]
    # A kernel for any device is taken where there is none for this one.
    return next((one for device in ("GPU", "DEFAULT") for one in fitting if one.device_type == device), None)


@functools.cache
def kernels_of(operation: str) -> list:
    """Returns all kernels that TensorFlow has for an operation."""
    return list(kernels.get_registered_kernels_for_op(operation).kernel)


def fits(kernel, node) -> bool:
    """Tells whether a kernel takes the types of a node."""
    return all(type_of(node, constraint.name) in constraint.allowed_values.list.type for constraint in kernel.constraint)


def type_of(node, attribute: str) -> int:
    """Returns an attribute of a node that is a type; a SavedModel leaves those away that have their defaults."""
    if attribute in node.attr:
        return node.attr[attribute].type
    return next(attr.default_value.type for attr in op_def_registry.get(node.op).attr if attr.name == attribute)
