"""Who serves: our SavedModel in TensorFlow's C runtime, and CTranslate2 with the same weights.

Each engine is a pair of functions: one translates a list of texts, the other warms the engine up as a server would.
"""

import json
from collections.abc import Callable
from pathlib import Path

Engine = tuple[Callable[[list[str]], list[str]], Callable[[], None]]


def ours(folder: Path, threads: int) -> Engine:
    """Loads the exported version. A thread for each batch, one thread for an operation."""
    from keras_transformer.serving.runtime import SavedModelSession

    session = SavedModelSession(folder / "export" / "1", intra_op_threads=1, inter_op_threads=threads)

    def translate(texts: list[str]) -> list[str]:
        found = session.run("serving_default", {"text": texts})["translation"]
        return [text.decode() for text in found]

    def warm_up():
        for signature, inputs in json.loads((folder / "warm_up.json").read_text(encoding="utf8")):
            session.run(signature, inputs)

    return translate, warm_up


def ctranslate2(folder: Path, threads: int) -> Engine:
    """Loads the same model in CTranslate2, with the same tokenizer before and behind it."""
    import ctranslate2
    import sentencepiece

    tokenizer = sentencepiece.SentencePieceProcessor(model_file=str(folder / "tokenizer.model"))
    translator = ctranslate2.Translator(str(folder / "ctranslate2"), inter_threads=threads, intra_threads=1)
    search = json.loads((folder / "search.json").read_text(encoding="utf8"))

    def translate(texts: list[str]) -> list[str]:
        sources = tokenizer.encode(texts, out_type=str)
        found = translator.translate_batch(sources, **search)
        return tokenizer.decode([result.hypotheses[0] for result in found])

    return translate, lambda: None


LIBRARIES = {"ours": "keras_transformer.serving.runtime", "ctranslate2": "ctranslate2"}
ENGINES = {"ours": ours, "ctranslate2": ctranslate2}
TITLES = {"ours": "SavedModel, TensorFlow's C runtime", "ctranslate2": "CTranslate2, float32"}
