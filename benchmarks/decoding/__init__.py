"""Who decodes. Each module has `make_decoder(shape, mode)`, which returns what `benchmarks.decoding.decoder` describes."""

from benchmarks.contenders import Contender


def _ours(backend: str, mode: str, package: str) -> Contender:
    return Contender(
        name=f"ours-{backend}",
        title=f"keras_transformer, {backend}",
        module="benchmarks.decoding.ours",
        modes=(mode,),
        packages=("keras", package),
        environment={"KERAS_BACKEND": backend, "TF_NUM_INTRAOP_THREADS": "1"},  # Sentences share the cores.
    )


def _ctranslate2(precision: str, is_split: bool = False) -> Contender:
    return Contender(
        name=f"ctranslate2-{precision}{'-split' if is_split else ''}",
        title=f"CTranslate2, {precision}{', batch split' if is_split else ''}",
        module="benchmarks.decoding.ctranslate2_engine",
        modes=(f"{precision}-split" if is_split else precision,),
        packages=("ctranslate2",),
        # On an Intel CPU it would take MKL's products, which several threads were slower at than one; oneDNN's gain from them.
        environment={} if is_split else {"CT2_USE_MKL": "0"},
        is_peer=True,
    )


REFERENCES = ("ctranslate2-float32", "ctranslate2-float32-split")  # Whichever is faster at a job.

DECODERS = {
    contender.name: contender
    for contender in (
        _ours("tensorflow", "graph", "tensorflow"),
        _ours("jax", "xla", "jax"),
        _ours("torch", "eager", "torch"),
        _ctranslate2("float32"),
        _ctranslate2("float32", is_split=True),
        _ctranslate2("int8"),
        Contender(
            "marian",
            "Hugging Face Marian, torch",
            "benchmarks.decoding.marian",
            ("eager",),
            ("torch", "transformers"),
            is_peer=True,
        ),
        Contender(
            "keras-hub",
            "keras-hub BART, tensorflow",
            "benchmarks.decoding.keras_hub_bart",
            ("graph",),
            ("keras", "keras_hub", "tensorflow"),
            {"KERAS_BACKEND": "tensorflow"},
            is_peer=True,
        ),
        Contender(
            "products",
            "products with weights alone, torch",
            "benchmarks.decoding.products",
            ("eager",),
            ("torch",),
            is_peer=True,
        ),
    )
}

QUICK_DECODERS = ["ours-tensorflow", "ctranslate2-float32", "ctranslate2-float32-split"]
DEFAULT_DECODERS = [*QUICK_DECODERS, "ctranslate2-int8", "marian", "keras-hub", "products"]
