"""Lets TensorFlow run the loops of a search as calls of functions, on a CPU. Imported when it is first needed.

By default TensorFlow takes loops apart: every value that goes round, each weight among them, then passes three nodes of the
graph in every step. A loop that stays whole hands all values over at once, and its steps have a third fewer nodes.
A step with few sentences is mostly nodes. (On a GPU, a whole loop has its condition copied to the host in each.)
"""

CONTROL_FLOW = ("While", "StatelessWhile", "If", "StatelessIf")
TAKES_APART = "_lower_using_switch_merge"
CPU = "/device:CPU:0"


def keep_loops_whole(library):
    """Keeps loops and branches of functions whole, and says that what they run is for the CPU.

    TensorFlow merges a product with its bias and its activation only where it knows the device.

    Args:
        library: A FunctionDefLibrary.
    """
    functions = {function.signature.name: function for function in library.function}
    for function in library.function:
        for node in function.node_def:
            if node.op in CONTROL_FLOW:
                node.attr.pop(TAKES_APART, None)
                for attribute in node.attr.values():
                    place_on_cpu(functions.get(attribute.func.name))


def place_on_cpu(function):
    """Places all nodes of a FunctionDef on the CPU; `None` is nothing to place."""
    for node in function.node_def if function is not None else ():
        node.device = CPU
