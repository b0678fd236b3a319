"""How a Transformer is divided among devices that hold it together."""

import keras

MODEL_AXIS = "model"


def layout_map(mesh: keras.distribution.DeviceMesh, axis: str = MODEL_AXIS) -> keras.distribution.LayoutMap:
    """Returns which variables of a `Transformer` are split over the devices of a mesh, and along which of their axes.

    For models that do not fit on one device. Heads, the inner layer of the feed-forward networks and the vocabulary are divided
    among the devices along `axis`: each device computes some heads, some hidden units and the logits of some tokens. Their
    results are summed up once after each attention, once after each feed-forward network and once after each embedding. All
    else (normalizations, positions, biases of what was summed up) every device has. The optimizer's moments are divided as
    their weights are.

        query, key, value, hidden    kernel (M, N H) or (M, F)    split by columns, and so is the bias
        output                       kernel (N H, M) or (F, M)    split by rows
        embeddings                   (V, M)                       split by rows
        logits                       kernel (M, V)                split by columns, and so is the bias

    Subclasses of the blocks are divided in the same way as long as they keep these names. Works on JAX, as all of
    `keras.distribution` does.

    Args:
        mesh: A mesh with an axis for the batch and one for the model, such as
            `keras.distribution.DeviceMesh((2, 4), ("batch", "model"))`. The number of devices along the second has to divide
            the number of heads, F and V; see `check_divisible`.
        axis: Name of the axis for the model.

    Returns:
        What `keras.distribution.ModelParallel(layout_map=...)` takes.

    Example:

    >>> mesh = keras.distribution.DeviceMesh((1, 1), ("batch", "model"), devices=["cpu:0"])
    >>> layout_map(mesh)["encoder_block_0/self_attention/query/kernel"].axes
    (None, 'model')
    """
    if axis not in mesh.axis_names:
        raise ValueError(
            f"The mesh needs an axis for the model, such as `DeviceMesh((2, 4), ('batch', {axis!r}))`. "
            f"Received: axis_names={tuple(mesh.axis_names)}"
        )
    layouts = keras.distribution.LayoutMap(mesh)
    for paths, axes in split_axes(axis).items():
        layouts[paths] = axes
    return layouts


def split_axes(axis: str) -> dict[str, tuple[str | None, ...]]:
    """Returns the axes along which variables are split, by regular expressions that match the whole of their paths."""
    columns, rows = r".*(self|cross)_attention/(query|key|value)|.*feed_forward/hidden", r".*(_attention|feed_forward)/output"
    return {
        rf"({columns})/kernel": (None, axis),
        rf"({columns})/bias": (axis,),
        rf"({rows})/kernel": (axis, None),
        r".*embedding/embeddings": (axis, None),
        r"(.*/)?logits/kernel": (None, axis),
        r"(.*/)?logits/bias": (axis,),
    }


def check_divisible(config, parts: int):
    """Raises a `ValueError` for a model that cannot be divided evenly.

    Args:
        config: The `TransformerConfig`.
        parts: Number of devices that hold the model together.
    """
    sizes = {
        name: getattr(config, name)
        for name in (
            "encoder_num_heads",
            "decoder_num_heads",
            "encoder_feed_forward_dim",
            "decoder_feed_forward_dim",
            "source_vocabulary_size",
            "target_vocabulary_size",
        )
    }
    uneven = {name: size for name, size in sizes.items() if size % parts}
    if uneven:
        raise ValueError(
            f"A model is divided among {parts} devices by its heads, its feed-forward width and its vocabulary; each must be a "
            f"multiple of {parts}. Received: {', '.join(f'{name}={size}' for name, size in uneven.items())}"
        )
