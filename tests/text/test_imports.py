import subprocess
import sys

WITHOUT_TENSORFLOW = """
import sys
import keras
before = "tensorflow" in sys.modules
from keras_transformer.text import SubwordSampling, Tokenizer, TokenizerPair, as_tokenizer, load_tokenizer
from tests.text.samples import sentences
tokenizer = Tokenizer.train(iter(sentences(100)), 320)
tokenizer.decode(tokenizer.encode("the cat", SubwordSampling(0.1)))
tokenizer.save(sys.argv[1])
assert load_tokenizer(sys.argv[1]) == tokenizer
as_tokenizer(TokenizerPair(tokenizer, tokenizer))
print(before, "tensorflow" in sys.modules, "keras_hub" in sys.modules, tokenizer.fingerprint)
"""


def test_training_and_encoding_need_no_tensorflow(tmp_path, monkeypatch):
    monkeypatch.setenv("KERAS_BACKEND", "jax")
    command = [sys.executable, "-c", WITHOUT_TENSORFLOW, str(tmp_path / "tokenizer.model")]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    assert printed[:3] == ["False", "False", "False"]
    from keras_transformer.text import Tokenizer
    from tests.text.samples import sentences

    assert printed[3] == Tokenizer.train(iter(sentences(100)), 320).fingerprint  # Another process, the same tokenizer.
