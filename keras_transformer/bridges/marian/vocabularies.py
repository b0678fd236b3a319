"""The tokenizers of a checkpoint: two SentencePiece models, and the ids of their pieces."""

from keras_transformer.bridges.marian.files import CheckpointFolder
from keras_transformer.models import TransformerConfig
from keras_transformer.text import MarianTokenizer, TokenizerPair

NAMES = {"pad": "pad_token", "end": "eos_token", "unknown": "unk_token"}
USUAL = {"pad": "<pad>", "end": "</s>", "unknown": "<unk>"}
# Settings that would cut texts otherwise, unless they are empty or false.
UNSUPPORTED = ("sp_model_kwargs", "split_special_tokens", "additional_special_tokens", "extra_special_tokens", "auto_map")
FILE_NAMES = {
    "source_spm": "source.spm",
    "target_spm": "target.spm",
    "vocab": "vocab.json",
    "vocab_file": "vocab.json",
    "target_vocab_file": "target_vocab.json",
}


def read_tokenizers(folder: CheckpointFolder, config: TransformerConfig) -> TokenizerPair:
    """Reads the tokenizers of both sides.

    Args:
        folder: The checkpoint.
        config: The shape of the model, which the vocabularies must fit.

    Returns:
        A tokenizer of source texts and one of target texts; their tokens may be the same.
    """
    older = folder.read_json("special_tokens_map.json", is_needed=False)
    settings = {**older, **folder.read_json("tokenizer_config.json", is_needed=False)}
    names = {name: content_of(settings.get(field)) or USUAL[name] for name, field in NAMES.items()}
    if not all(isinstance(name, str) for name in names.values()):
        raise ValueError(
            f"{folder.origin('tokenizer_config.json')}: the names of special tokens must be text. Received: {names}"
        )
    check_settings(folder, settings, set(names.values()))
    source = read_tokens(folder, "vocab.json", config.source_vocabulary_size)
    target_file = "target_vocab.json" if settings.get("separate_vocabs") else "vocab.json"
    target = read_tokens(folder, target_file, config.target_vocabulary_size)
    sides = []
    for model_file, file, tokens in (("source.spm", "vocab.json", source), ("target.spm", target_file, target)):
        try:
            tokenizer = MarianTokenizer(
                folder.read_bytes(model_file),
                tokens,
                **names,
                start=tokens[config.start_id],
                tidy=bool(settings.get("clean_up_tokenization_spaces")),
            )
        except ValueError as error:
            raise ValueError(f"{folder.origin(model_file)} and {file}: {error}") from error
        check_special_ids(tokenizer, config, folder.origin(file))
        sides.append(tokenizer)
    return TokenizerPair(*sides)


def content_of(token) -> str | None:
    """Returns the text of a token, which is written plainly or with its properties."""
    return token.get("content") if isinstance(token, dict) else token


def check_settings(folder: CheckpointFolder, settings: dict, special: set[str]):
    """Raises a `ValueError` that names all settings which would cut texts otherwise, or name files elsewhere."""
    origin = folder.origin("tokenizer_config.json")
    wrong = [
        f"{name}={settings[name]!r:.100}"
        for name in UNSUPPORTED
        if settings.get(name) and not is_subset(settings[name], special)
    ]
    wrong += [f"{name}={settings[name]!r}" for name, file in FILE_NAMES.items() if settings.get(name) not in (None, file)]
    wrong += [f"the added token {token!r}" for token in added_tokens(folder, settings) if is_unlike(token, special)]
    if wrong:
        raise ValueError(f"{origin} asks for what is not supported and would change translations: {', '.join(wrong)}")


def is_subset(tokens, special: set[str]) -> bool:
    """Tells whether additional tokens are none beside those that are special anyway."""
    return isinstance(tokens, list) and all(content_of(token) in [*special] for token in tokens)


def added_tokens(folder: CheckpointFolder, settings: dict) -> list:
    """Lists tokens that were added to the vocabulary later."""
    later = settings.get("added_tokens_decoder") or {}
    return [*folder.read_json("added_tokens.json", is_needed=False), *(later.values() if isinstance(later, dict) else [later])]


def is_unlike(token, special: set[str]) -> bool:
    """Tells whether an added token is something else than a special token that stands for itself."""
    properties = token if isinstance(token, dict) else {}
    return content_of(token) not in [*special] or any(properties.get(name) for name in ("lstrip", "rstrip", "single_word"))


def read_tokens(folder: CheckpointFolder, name: str, size: int) -> list[str]:
    """Reads a vocabulary and returns its tokens by id; each id of the model must have one."""
    ids = folder.read_json(name)
    tokens = {id: token for token, id in ids.items() if isinstance(id, int) and not isinstance(id, bool)}
    if len(ids) != size or len(tokens) != size or min(tokens) != 0 or max(tokens) != size - 1:
        raise ValueError(
            f"{folder.origin(name)} must have one token for each of the model's ids, 0 to {size - 1}. Received: {len(ids)} "
            f"tokens with {len(tokens)} different numbers as their ids. Do the files belong together?"
        )
    return [tokens[id] for id in range(size)]


def check_special_ids(tokenizer: MarianTokenizer, config: TransformerConfig, origin: str):
    """Raises a `ValueError` if a vocabulary and config.json disagree on special tokens."""
    for name in ("pad_id", "end_id"):
        if getattr(tokenizer, name) != getattr(config, name):
            raise ValueError(
                f"{origin} and config.json do not belong together: {name} is {getattr(tokenizer, name)} in the one and "
                f"{getattr(config, name)} in the other"
            )
