"""How a checkpoint wants translations to be searched for: from generation_config.json to `SearchOptions`."""

from keras_transformer.bridges.marian.files import CheckpointFolder
from keras_transformer.decoding import SearchOptions
from keras_transformer.models import TransformerConfig

FILE = "generation_config.json"
DEFAULT_NEW_TOKENS = 20  # Where no length is given.
STOPPING = {True: "first", False: "heuristic", "never": "bound"}

CARRIED = {
    "num_beams",
    "num_return_sequences",
    "length_penalty",
    "early_stopping",
    "max_length",
    "max_new_tokens",
    "min_length",
    "min_new_tokens",
    "bad_words_ids",
    "suppress_tokens",
    "renormalize_logits",
    "forced_eos_token_id",
    "eos_token_id",
    "pad_token_id",
    "decoder_start_token_id",
}
INTEGER = "an integer", lambda value: isinstance(value, int) and not isinstance(value, bool)
KINDS = {
    **dict.fromkeys(
        ["num_beams", "num_return_sequences", "max_length", "max_new_tokens", "min_length", "min_new_tokens"], INTEGER
    ),
    "length_penalty": ("a number", lambda value: isinstance(value, int | float)),
    "early_stopping": ('true, false or "never"', lambda value: isinstance(value, bool) or value == "never"),
    "renormalize_logits": ("true or false", lambda value: isinstance(value, bool)),
    "bad_words_ids": ("a list of lists", lambda value: isinstance(value, list) and all(isinstance(one, list) for one in value)),
    "suppress_tokens": ("a list", lambda value: isinstance(value, list)),
}
# What changes translations and is not supported, and its value that changes nothing.
NEUTRAL = {
    "do_sample": False,
    "num_beam_groups": 1,
    "diversity_penalty": 0.0,
    "repetition_penalty": 1.0,
    "encoder_repetition_penalty": 1.0,
    "no_repeat_ngram_size": 0,
    "encoder_no_repeat_ngram_size": 0,
    "forced_bos_token_id": None,
    "force_bos_token_to_be_generated": False,
    "force_words_ids": None,
    "constraints": None,
    "begin_suppress_tokens": None,
    "sequence_bias": None,
    "exponential_decay_length_penalty": None,
    "guidance_scale": 1.0,
    "penalty_alpha": 0.0,
    "dola_layers": None,
    "watermarking_config": None,
    "stop_strings": None,
    "max_time": None,
    "token_healing": False,
    "use_mtp": False,
    "assistant_early_exit": None,
    "assistant_ensemble_weight": None,
    "speculation_type": None,
}
# What changes nothing as long as tokens are not drawn at random, or concerns only how and what is computed beside.
HARMLESS = {
    "temperature",
    "top_k",
    "top_p",
    "min_p",
    "top_h",
    "typical_p",
    "epsilon_cutoff",
    "eta_cutoff",
    "remove_invalid_values",
    "bos_token_id",
    "use_cache",
    "cache_implementation",
    "cache_config",
    "max_cache_len",
    "return_legacy_cache",
    "low_memory",
    "prefill_chunk_size",
    "compile_config",
    "disable_compile",
    "continuous_batching_config",
    "output_attentions",
    "output_hidden_states",
    "output_scores",
    "output_logits",
    "return_dict_in_generate",
    "is_assistant",
    "num_assistant_tokens",
    "num_assistant_tokens_schedule",
    "assistant_confidence_threshold",
    "assistant_lookbehind",
    "target_lookbehind",
    "prompt_lookup_num_tokens",
    "max_matching_ngram_size",
    "generation_kwargs",
    "transformers_version",
    "_from_model_config",
    "_commit_hash",
}


def read_search_options(folder: CheckpointFolder, settings: dict, config: TransformerConfig) -> SearchOptions:
    """Reads the settings of a checkpoint's search.

    Args:
        folder: The checkpoint.
        settings: The content of config.json, where older checkpoints have these settings.
        config: The shape of the model.

    Returns:
        Options that search as `generate` of Hugging Face does with these settings.
    """
    name = FILE if folder.find(FILE) else "config.json"
    if name == FILE:
        settings = folder.read_json(FILE)
        known = CARRIED | set(NEUTRAL) | HARMLESS
    else:
        settings = {"forced_eos_token_id": 0, **settings}  # As Marian has it.
        known = settings  # There is much in it that has nothing to do with a search.
    given = {field: value for field, value in settings.items() if value is not None}
    try:
        check_supported(given, known)
        check_kinds(given)
        check_ids(given, config)
        return search_options(given, config)
    except ValueError as error:
        raise ValueError(f"{folder.origin(name)}: {error}") from error


def check_supported(given: dict, known):
    """Raises a `ValueError` that names all settings which would change translations and are not supported."""
    wrong = [f"{name}={value!r}" for name, value in given.items() if name in NEUTRAL and value != NEUTRAL[name]]
    wrong += [f"{name}={value!r}" for name, value in given.items() if name not in known]
    if wrong:
        raise ValueError(
            f"these settings are not supported and might change translations: {', '.join(wrong)}. Take them out of the file to "
            "translate without them"
        )


def check_kinds(given: dict):
    """Raises a `ValueError` for a setting that is not what it should be."""
    for name in given.keys() & KINDS.keys():
        description, is_right = KINDS[name]
        if not is_right(given[name]):
            raise ValueError(f"`{name}` must be {description}. Received: {name}={given[name]!r:.200}")


def check_ids(given: dict, config: TransformerConfig):
    """Raises a `ValueError` if the search starts, ends or pads otherwise than the model."""
    ids = {"eos_token_id": config.end_id, "pad_token_id": config.pad_id, "decoder_start_token_id": config.start_id}
    for name, id in {**ids, "forced_eos_token_id": config.end_id}.items():
        if given.get(name, id) not in (id, [id]):
            raise ValueError(f"`{name}` must be {id}, as in config.json. Received: {given[name]!r}")


def search_options(given: dict, config: TransformerConfig) -> SearchOptions:
    """Turns settings into options. A length of `generate` counts the start and the end of a translation."""
    longest, shortest = lengths(given, config)
    return SearchOptions(
        beam_size=given.get("num_beams", 1),
        num_hypotheses=given.get("num_return_sequences", 1),
        length_penalty=float(given.get("length_penalty", 1.0)),
        penalty="power",
        min_length=min(shortest, longest),
        max_length=longest,
        stopping=STOPPING[given.get("early_stopping", False)],
        banned_ids=banned_ids(given, config),
        rescale=bool(given.get("renormalize_logits", False)),
        ends_within_beam=True,
        free_last_end=True,
    )


def lengths(given: dict, config: TransformerConfig) -> tuple[int, int]:
    """Returns the most and the fewest tokens of a translation, without start and end."""
    default = min(DEFAULT_NEW_TOKENS, config.max_length - 1)
    most = given["max_length"] - 1 if "max_length" in given else default
    most = given.get("max_new_tokens", most)
    fewest = given.get("min_new_tokens", given.get("min_length", 0) - 1)
    # Without a forced end, as many tokens fit into the limit as with one; then `generate` leaves the end out.
    has_forced_end = given.get("forced_eos_token_id") is not None
    return most - 1 if has_forced_end else most, max(0, fewest)


def banned_ids(given: dict, config: TransformerConfig) -> tuple[int, ...]:
    """Returns the tokens that never occur in a translation."""
    sequences = given.get("bad_words_ids", [])
    if any(len(sequence) != 1 for sequence in sequences):
        raise ValueError(f"`bad_words_ids` of several tokens each are not supported. Received: {sequences!r:.200}")
    ids = [id for (id,) in sequences if id != config.end_id] + given.get("suppress_tokens", [])
    for id in ids:
        if not isinstance(id, int) or not 0 <= id < config.target_vocabulary_size or id == config.end_id:
            raise ValueError(
                f"Banned tokens must be ids below {config.target_vocabulary_size}, and not the end. Received: {id!r}"
            )
    return tuple(sorted(set(ids)))
