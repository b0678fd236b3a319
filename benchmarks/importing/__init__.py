"""Who translates with a Marian checkpoint. Each module has `make_decoder(folder, mode)`; see `benchmarks.decoding.decoder`."""

from dataclasses import replace

from benchmarks.decoding import DECODERS as OTHERS

MODULES = {
    "ours-tensorflow": "benchmarks.importing.ours",
    "ours-jax": "benchmarks.importing.ours",
    "ours-torch": "benchmarks.importing.ours",
    "ctranslate2-float32": "benchmarks.importing.ctranslate2_engine",
    "ctranslate2-float32-split": "benchmarks.importing.ctranslate2_engine",
    "ctranslate2-int8": "benchmarks.importing.ctranslate2_engine",
    "marian": "benchmarks.importing.hugging_face",
}
DECODERS = {name: replace(OTHERS[name], module=module) for name, module in MODULES.items()}
DEFAULT_DECODERS = ["ours-tensorflow", "ctranslate2-float32", "ctranslate2-float32-split", "ctranslate2-int8", "marian"]
