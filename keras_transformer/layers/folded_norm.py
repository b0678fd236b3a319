"""Normalization as part of the kernels around it, for decoders that normalize before each sublayer.

    LayerNorm(x) W + b  =  (x - mean(x)) / sqrt(variance(x) + epsilon)  diag(gamma) W  +  (beta W + b)

Scale and shift can be multiplied into the kernel that follows. The mean of `x` is of no use, for every normalization takes it
away again: what a sublayer adds to `x` has none if the rows of its last kernel have none. What is left to compute in each step
is `x / sqrt(mean(x^2) + epsilon)`, half of the operations.
"""

from dataclasses import dataclass

import keras
from keras import ops

from keras_transformer.layers.decoder_block import DecoderBlock
from keras_transformer.layers.feed_forward import FeedForward
from keras_transformer.layers.lean_norm import is_plain_norm
from keras_transformer.layers.multi_head_attention import MultiHeadAttention
from keras_transformer.layers.spaced_kernel import is_plain_dense, parts_of, spaced_dense


@dataclass(frozen=True)
class FoldedNorm:
    """What is left of a normalization of vectors without mean: `x / sqrt(mean(x^2) + epsilon)`.

    Attributes:
        epsilon: That of the normalization.
    """

    epsilon: float
    weights = ()

    def __call__(self, x):
        """Normalizes each vector of `(B, T, M)`."""
        rows = ops.reshape(x, (-1, x.shape[-1]))
        y = rows * ops.rsqrt(ops.mean(ops.square(rows), axis=-1, keepdims=True) + self.epsilon)
        return ops.reshape(y, (-1, *tuple(ops.shape(x))[1:]))


class Centering:
    """Takes its mean away from each vector, where vectors enter a stack of blocks."""

    weights = ()

    def __call__(self, x):
        """Centers each vector of `(B, T, M)`."""
        return x - ops.mean(x, axis=-1, keepdims=True)


def fold_norms(blocks: list[keras.layers.Layer], kernels: dict) -> dict:
    """Folds the normalizations of a decoder's blocks into their kernels.

    Args:
        blocks: All blocks of a decoder, built, in their order. If one of them is not a `DecoderBlock` with `norm="pre"` that
            computes in float32, made of the parts that it has by default, nothing is folded.
        kernels: What `spaced_kernels` returned for these blocks.

    Returns:
        A dictionary for `use_kernels`: `kernels`, with what changes. The layers themselves stay as they are.
    """
    if not blocks or not all(map(can_be_folded, blocks)):
        return kernels
    parts = [part for block in blocks for part in sublayers(block)]
    inner = [dense for _, inputs, output in parts for dense in (*inputs, output)]
    folded = {**kernels, **{id(dense): spaced_dense(dense) for dense in inner if id(dense) not in kernels}}
    for norm, inputs, output in parts:
        for kernel in {id(folded[id(dense)].spaced): folded[id(dense)].spaced for dense in inputs}.values():
            fold_into(kernel, norm)
        center(folded[id(output)].spaced)
        folded[id(norm)] = FoldedNorm(norm.epsilon)
    # The first block itself is no key: the twins that capture attention have its parts, and another identity.
    return {**folded, id(blocks[0].self_attention_dropout): Centering()}


def sublayers(block: DecoderBlock) -> list[tuple]:
    """Returns, for each sublayer, its normalization, the linear maps that see what it gives, and the last one."""
    own, cross, network = block.self_attention, block.cross_attention, block.feed_forward
    return [
        (block.self_attention_norm, [own.query_dense, own.key_dense, own.value_dense], own.output_dense),
        (block.cross_attention_norm, [cross.query_dense], cross.output_dense),
        (block.feed_forward_norm, [network.hidden_dense], network.output_dense),
    ]


def can_be_folded(block: keras.layers.Layer) -> bool:
    """Tells whether a block and its parts are what `sublayers` takes them for, and compute in float32."""
    if type(block) is not DecoderBlock or block.norm != "pre":
        return False
    attentions = block.self_attention, block.cross_attention
    if any(type(one) is not MultiHeadAttention for one in attentions) or type(block.feed_forward) is not FeedForward:
        return False
    if any(layer.compute_dtype != "float32" for layer in parts_of([block])):
        return False
    return all(
        is_plain_norm(norm) and all(map(is_plain_dense, (*inputs, output))) and output.activation is keras.activations.linear
        for norm, inputs, output in sublayers(block)
    )


def fold_into(kernel, norm: keras.layers.LayerNormalization):
    """Multiplies scale and shift of a normalization into a `SpacedKernel` that maps what it gives."""
    shift = ops.matmul(norm.beta[None], kernel.kernel)[0]
    kernel.bias = shift if kernel.bias is None else kernel.bias + shift
    kernel.kernel = norm.gamma[:, None] * kernel.kernel


def center(kernel):
    """Takes the mean of what a `SpacedKernel` gives away; unused columns stay unused."""
    used = ops.cast(ops.arange(kernel.kernel.shape[1]) < kernel.units, "float32")
    kernel.kernel = kernel.kernel - used * ops.sum(kernel.kernel * used, axis=1, keepdims=True) / kernel.units
    if kernel.bias is not None:
        kernel.bias = kernel.bias - used * ops.sum(kernel.bias * used) / kernel.units
