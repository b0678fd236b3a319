"""Encoding a batch of short and long sources without computing its padding.

A server cannot choose what comes together in a batch. With all sources as long as the longest, one long text among short ones
makes many times the work. So they are encoded from the longest to the shortest, some at a time.
"""

SOURCE_LENGTHS = 4  # Sources in a TensorFlow graph have a multiple of so many tokens: its products are prepared for each size.
FEWEST_SENTENCES = 8  # Sentences that are encoded together,
FEWEST_ROWS = 128  # or more of them if they are short: products with fewer rows are slower.


def encode_by_length(model, source_ids, source_mask):
    """Runs the encoder of a model within a TensorFlow graph, for sources of about the same length at a time.

    Args:
        model: A `Transformer`.
        source_ids: Integer tensor `(B, S)`.
        source_mask: Boolean tensor `(B, S)`, True at real tokens.

    Returns:
        A float tensor `(B, S, M)`; what stands beyond the end of a source means nothing.
    """
    import tensorflow as tf  # noqa: TID251

    batch_size, longest = tf.unstack(tf.shape(source_ids))
    lengths = tf.reduce_max(tf.where(source_mask, tf.range(1, longest + 1), 1), axis=1)  # (B,)
    order = tf.argsort(lengths, direction="DESCENDING")
    ids, mask, lengths = (tf.gather(x, order) for x in (source_ids, source_mask, lengths))

    def encode_next(first, encoded):
        length = tf.minimum(lengths[first] + -lengths[first] % SOURCE_LENGTHS, longest)
        last = first + tf.maximum(FEWEST_SENTENCES, FEWEST_ROWS // length)
        new = model.encode(ids[first:last, :length], mask[first:last, :length])
        return last, tf.concat([encoded, tf.pad(new, [[0, 0], [0, longest - length], [0, 0]])], axis=0)

    width = model.config.model_dim
    none = tf.zeros((0, longest, width), model.compute_dtype)
    shapes = tf.TensorShape([]), tf.TensorShape([None, None, width])
    _, encoded = tf.while_loop(lambda first, _: first < batch_size, encode_next, (0, none), shape_invariants=shapes)
    return tf.gather(encoded, tf.math.invert_permutation(order))
