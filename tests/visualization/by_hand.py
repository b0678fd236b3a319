"""The attention of a Transformer worked out from its weights with numpy, in double precision."""

import numpy as np

from tests.gradients import numpy_of


class ByHand:
    """Computes what `attention_scores` returns, by the equations of the paper.

    Args:
        model: A `Transformer` with `norm="post"`, `tie="all"`, `activation="relu"` and sinusoidal positions.
    """

    def __init__(self, model):
        self.config = model.config
        self.values = {variable.path: numpy_of(variable).astype("float64") for variable in model.weights}

    def value(self, path):
        return next(value for name, value in self.values.items() if name.endswith(path))

    def dense(self, x, path):
        return x @ self.value(f"{path}/kernel") + self.value(f"{path}/bias")

    def normalize(self, x, path):
        deviation = np.sqrt(x.var(-1, keepdims=True) + self.config.layer_norm_epsilon)
        return (x - x.mean(-1, keepdims=True)) / deviation * self.value(f"{path}/gamma") + self.value(f"{path}/beta")

    def embed(self, ids):
        width = self.config.model_dim
        channels, positions = np.arange(width), np.arange(ids.shape[1])[:, None]
        angles = positions / 10000 ** (channels // 2 * 2 / width)
        encoding = np.where(channels % 2, np.cos(angles), np.sin(angles))
        return self.value("token_embedding/embeddings")[ids] * np.sqrt(width) + encoding

    def attend(self, queries, keys, path, num_heads, mask):
        """Returns the output `(B, T, M)` and the weights `(B, N, T, S)`."""
        heads = {
            name: np.stack(np.split(self.dense(x, f"{path}/{name}"), num_heads, axis=-1), axis=1)  # (B, N, T, H)
            for name, x in {"query": queries, "key": keys, "value": keys}.items()
        }
        products = heads["query"] @ heads["key"].swapaxes(-1, -2) / np.sqrt(heads["key"].shape[-1])  # (B, N, T, S)
        powers = np.exp(products - products.max(-1, keepdims=True)) * mask
        weights = powers / powers.sum(-1, keepdims=True)
        context = np.concatenate(np.moveaxis(weights @ heads["value"], 1, 0), axis=-1)  # (B, T, N * H)
        return self.dense(context, f"{path}/output"), weights

    def feed_forward(self, x, block):
        hidden = np.maximum(0, self.dense(x, f"{block}/feed_forward/hidden"))
        return self.normalize(x + self.dense(hidden, f"{block}/feed_forward/output"), f"{block}/feed_forward_norm")

    def scores(self, source_ids, target_ids):
        """Returns `{"encoder_self", "decoder_self", "cross"}`, arrays `(B, layers, N, queries, keys)`."""
        real = (source_ids != self.config.pad_id)[:, None, None, :]
        past = np.tri(target_ids.shape[1], dtype=bool)
        found = {"encoder_self": [], "decoder_self": [], "cross": []}

        def sublayer(kind, x, keys, block, name, mask):
            side = "encoder" if kind == "encoder_self" else "decoder"
            y, weights = self.attend(x, keys, f"{block}/{name}", getattr(self.config, f"{side}_num_heads"), mask)
            found[kind].append(weights)
            return self.normalize(x + y, f"{block}/{name}_norm")

        x = self.embed(source_ids)
        for layer in range(self.config.num_encoder_layers):
            block = f"encoder_block_{layer}"
            x = self.feed_forward(sublayer("encoder_self", x, x, block, "self_attention", real), block)
        y = self.embed(target_ids)
        for layer in range(self.config.num_decoder_layers):
            block = f"decoder_block_{layer}"
            y = sublayer("decoder_self", y, y, block, "self_attention", past)
            y = self.feed_forward(sublayer("cross", y, x, block, "cross_attention", real), block)
        return {kind: np.stack(layers, axis=1) for kind, layers in found.items()}
