"""The order of the nodes of a function's graph."""

from collections.abc import Iterator


def in_order(nodes: dict) -> Iterator:
    """Yields nodes, each after those whose outputs it takes. (Not by recursion: graphs are deep.)"""
    begun, done = set(), set()
    for name in nodes:
        waiting = [name]
        while waiting:
            name = waiting[-1]
            missing = [one for one in map(node_of, nodes[name].input) if one in nodes and one not in begun]
            if name in begun or not missing:
                waiting.pop()
                if name not in done:
                    done.add(name)
                    begun.add(name)
                    yield nodes[name]
            else:
                begun.add(name)
                waiting += missing


def node_of(tensor: str) -> str:
    """Returns the name of the node that a tensor, or a control dependency, comes from."""
    return tensor.removeprefix("^").partition(":")[0]
