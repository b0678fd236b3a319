"""The shape of a Transformer, in one record."""

import dataclasses
import difflib
from dataclasses import InitVar, dataclass

import keras

from keras_transformer.checks import check_fields, choice, flag, number, one_or_pair, whole

LARGEST_RATE = 0.999  # Of dropout. What is kept is divided by the rest, 1 - rate, which must not vanish in float32.
SIZE = whole(1, 2**31 - 1)  # What 32 bits can count, as the backends do.
LAYERS = whole(1, 1000)
CHECKS = {
    "source_vocabulary_size": SIZE,
    "target_vocabulary_size": SIZE,
    "model_dim": SIZE,
    "feed_forward_dim": one_or_pair(SIZE),
    "num_heads": one_or_pair(SIZE),
    "num_encoder_layers": LAYERS,
    "num_decoder_layers": LAYERS,
    "norm": choice("post", "pre"),
    "positions": choice("sinusoidal", "sinusoidal_halves", "learned"),
    "max_length": SIZE,
    "use_bias": flag,
    "output_bias": flag,
    "tie": choice("all", "decoder", "none"),
    "embedding_scale": flag,
    "layer_norm_epsilon": number(1e-30, 1.0),
    "dropout": number(0.0, LARGEST_RATE),
    "attention_dropout": number(0.0, LARGEST_RATE),
    "activation_dropout": number(0.0, LARGEST_RATE),
}
SPECIAL_IDS = ("pad_id", "start_id", "end_id", "unknown_id")


@dataclass(frozen=True)
class TransformerConfig:
    """Everything that decides what a Transformer computes, apart from its weights.

    The defaults are the paper's base model; only the vocabulary is left to say. A config is frozen: `replace` makes a changed
    copy.

    Args:
        source_vocabulary_size: Number of ids of the source language.
        target_vocabulary_size: Number of ids of the target language.
        model_dim: Width of the vectors between blocks (d_model).
        feed_forward_dim: Width of the feed-forward networks (d_ff); a pair says (encoder, decoder).
        num_heads: Number of attention heads (h); a pair says (encoder, decoder).
        num_encoder_layers: Number of encoder blocks (N).
        num_decoder_layers: Number of decoder blocks (N).
        norm: `"post"`, as in the paper, or `"pre"`, with a last normalization behind each stack.
        positions: `"sinusoidal"`, sine and cosine in turn as in the paper; `"sinusoidal_halves"`, all sines first; `"learned"`.
        max_length: Number of learned positions, and the longest text that is served.
        activation: Name of the activation of the feed-forward networks.
        use_bias: Whether attention and feed-forward projections have biases.
        output_bias: Whether the logits have a bias.
        tie: Which share one matrix: `"all"`, both embeddings and the logits as in the paper; `"decoder"`, the target embedding
            and the logits; `"none"`.
        embedding_scale: Whether embeddings are multiplied by sqrt(model_dim).
        layer_norm_epsilon: Epsilon of the normalizations, on which the paper is silent.
        dropout: Rate of dropout on the output of each sublayer and on the embeddings.
        attention_dropout: Rate of dropout on the attention weights.
        activation_dropout: Rate of dropout within the feed-forward networks.
        pad_id: Id that fills the end of short sentences.
        start_id: Id that starts a target.
        end_id: Id that ends a target.
        unknown_id: Id of text the vocabulary does not know.
        vocabulary_size: Sets the sizes of both vocabularies.

    Example:

    >>> TransformerConfig(vocabulary_size=8000, model_dim=256).replace(norm="pre").norm
    'pre'
    """

    source_vocabulary_size: int | None = None
    target_vocabulary_size: int | None = None
    model_dim: int = 512
    feed_forward_dim: int | tuple[int, int] = 2048
    num_heads: int | tuple[int, int] = 8
    num_encoder_layers: int = 6
    num_decoder_layers: int = 6
    norm: str = "post"
    positions: str = "sinusoidal"
    max_length: int = 512
    activation: str = "relu"
    use_bias: bool = True
    output_bias: bool = False
    tie: str = "all"
    embedding_scale: bool = True
    layer_norm_epsilon: float = 1e-6
    dropout: float = 0.1
    attention_dropout: float = 0.0
    activation_dropout: float = 0.0
    pad_id: int = 0
    start_id: int = 1
    end_id: int = 2
    unknown_id: int = 3
    vocabulary_size: InitVar[int | None] = None

    def __post_init__(self, vocabulary_size):
        self._set_vocabulary(vocabulary_size)
        check_fields(self, CHECKS)
        self._check_heads()
        self._check_tie()
        self._check_activation()
        self._check_ids()

    def _set_vocabulary(self, vocabulary_size):
        for name in ("source_vocabulary_size", "target_vocabulary_size"):
            given = getattr(self, name)
            if vocabulary_size is not None and given not in (None, vocabulary_size):
                raise ValueError(
                    f"`vocabulary_size` sets both vocabularies, but `{name}` says otherwise. Give one of the two. "
                    f"Received: vocabulary_size={vocabulary_size}, {name}={given}"
                )
            if given is None and vocabulary_size is None:
                raise ValueError(
                    f"The size of the vocabulary is missing. Pass `vocabulary_size=` for both languages, or `{name}=`. "
                    f"Received: {name}=None"
                )
            object.__setattr__(self, name, vocabulary_size if given is None else given)

    def _check_heads(self):
        for side, heads in {"encoder": self.encoder_num_heads, "decoder": self.decoder_num_heads}.items():
            if self.model_dim % heads:
                raise ValueError(
                    f"`model_dim` must be divisible by the number of heads of the {side}. Change one of the two. "
                    f"Received: model_dim={self.model_dim}, num_heads={self.num_heads}"
                )

    def _check_tie(self):
        if self.tie == "all" and self.source_vocabulary_size != self.target_vocabulary_size:
            raise ValueError(
                'With `tie="all"` source and target share one vocabulary, so both sizes must be equal. Make them equal, or use '
                f'`tie="decoder"`. Received: source_vocabulary_size={self.source_vocabulary_size}, '
                f"target_vocabulary_size={self.target_vocabulary_size}"
            )

    def _check_activation(self):
        if not isinstance(self.activation, str):
            raise ValueError(
                "`activation` must be a name, so that the config can be saved; register a function of your own with "
                f"`keras.saving.register_keras_serializable` and pass its registered name. Received: {self.activation!r}"
            )
        try:
            keras.activations.get(self.activation)
        except ValueError as error:
            raise ValueError(
                f'`activation` must be the name of a Keras activation, such as "relu" or "gelu". '
                f"Received: activation={self.activation!r}"
            ) from error

    def _check_ids(self):
        smallest = min(self.source_vocabulary_size, self.target_vocabulary_size)
        check_fields(self, dict.fromkeys(SPECIAL_IDS, whole(0, smallest - 1, "an id of both vocabularies,")))
        if self.end_id in (self.pad_id, self.start_id):
            raise ValueError(
                "`end_id` must differ from `pad_id` and `start_id`, or no sentence could end. "
                f"Received: pad_id={self.pad_id}, start_id={self.start_id}, end_id={self.end_id}"
            )

    @property
    def encoder_num_heads(self) -> int:
        """Number of attention heads of the encoder."""
        return self.num_heads[0] if isinstance(self.num_heads, tuple) else self.num_heads

    @property
    def decoder_num_heads(self) -> int:
        """Number of attention heads of the decoder."""
        return self.num_heads[1] if isinstance(self.num_heads, tuple) else self.num_heads

    @property
    def encoder_feed_forward_dim(self) -> int:
        """Width of the feed-forward networks of the encoder."""
        return self.feed_forward_dim[0] if isinstance(self.feed_forward_dim, tuple) else self.feed_forward_dim

    @property
    def decoder_feed_forward_dim(self) -> int:
        """Width of the feed-forward networks of the decoder."""
        return self.feed_forward_dim[1] if isinstance(self.feed_forward_dim, tuple) else self.feed_forward_dim

    def replace(self, **changes) -> "TransformerConfig":
        """Returns a copy with some fields changed; `vocabulary_size` changes both vocabularies."""
        fields = self.to_dict()
        if changes.get("vocabulary_size") is not None:
            fields.update(source_vocabulary_size=None, target_vocabulary_size=None)
        return TransformerConfig.from_dict({**fields, **changes})

    def to_dict(self) -> dict:
        """Returns the fields as a dictionary that JSON can hold."""
        fields = dataclasses.asdict(self)
        return {name: list(value) if isinstance(value, tuple) else value for name, value in fields.items()}

    @classmethod
    def from_dict(cls, fields: dict) -> "TransformerConfig":
        """Makes a config from a dictionary; an unknown name is an error that suggests the nearest right one."""
        if not isinstance(fields, dict):
            raise ValueError(f"The fields of a TransformerConfig must be a dictionary. Received: {fields!r:.200}")
        known = [field.name for field in dataclasses.fields(cls)] + ["vocabulary_size"]
        for name in fields:
            if name not in known:
                nearest = difflib.get_close_matches(name, known, n=1, cutoff=0)[0]
                raise ValueError(
                    f"`{name}` is not a field of TransformerConfig. Did you mean `{nearest}`? Received: {name}={fields[name]!r}"
                )
        return cls(**fields)


def _shared_vocabulary_size(config: TransformerConfig) -> int:
    if config.source_vocabulary_size != config.target_vocabulary_size:
        raise ValueError(
            "The two vocabularies differ; ask for `source_vocabulary_size` or `target_vocabulary_size`. "
            f"Received: {config.source_vocabulary_size} and {config.target_vocabulary_size}"
        )
    return config.source_vocabulary_size


# An InitVar leaves its default behind as a class attribute; reading it should give the size, not None.
TransformerConfig.vocabulary_size = property(_shared_vocabulary_size)
