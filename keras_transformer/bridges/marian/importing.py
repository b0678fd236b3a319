"""From a checkpoint to a translator."""

import os

from keras_transformer.bridges.marian.architecture import read_architecture
from keras_transformer.bridges.marian.download import find_folder
from keras_transformer.bridges.marian.files import CheckpointFolder
from keras_transformer.bridges.marian.generation import read_search_options
from keras_transformer.bridges.marian.tensors import open_tensors
from keras_transformer.bridges.marian.vocabularies import read_tokenizers
from keras_transformer.bridges.marian.weights import check_tensors, has_output_bias, set_weights
from keras_transformer.models import Transformer
from keras_transformer.translator import Translator


def from_marian(directory_or_name: str | os.PathLike, *, revision: str | None = None) -> Translator:
    """Makes a translator of a Marian checkpoint, such as those of OPUS-MT.

    The translator computes what Hugging Face's `MarianMTModel` computes, cuts texts as its `MarianTokenizer` does, and searches
    as its `generate` does with the checkpoint's own settings. It is a translator like any other: it can be trained on, saved,
    and exported. Nothing in a checkpoint is executed, and only files of known names inside its folder are read.

    Weights in `model.safetensors` need the package safetensors, and a download huggingface_hub:
    `pip install "keras3-transformer[marian]"`. Weights in `pytorch_model.bin` need torch.

    Args:
        directory_or_name: A folder with the files of a checkpoint, or the name of a published one: `"opus-mt-en-de"` stands for
            `"Helsinki-NLP/opus-mt-en-de"`. A published one is downloaded once.
        revision: Branch, tag or commit of a published checkpoint.

    Returns:
        The translator. Its options are the checkpoint's.

    Raises:
        ValueError: If the checkpoint is damaged, or asks for something that would change translations and is not supported.

    Example:

        translator = kt.bridges.from_marian("opus-mt-en-de")
        translator.translate("The animal didn't cross the street because it was too tired.")
    """
    folder = CheckpointFolder(find_folder(directory_or_name, revision))
    settings = folder.read_json("config.json")
    config = read_architecture(settings, folder.origin("config.json"))
    options = read_search_options(folder, settings, config)
    tokenizer = read_tokenizers(folder, config)
    tensors = open_tensors(folder)
    check_tensors(tensors, config)
    config = config.replace(output_bias=has_output_bias(tensors), unknown_id=tokenizer.target.unknown_id)
    model = Transformer(config)
    set_weights(model, tensors)
    return Translator(model, tokenizer, options)
