"""A SavedModel with the signatures of an exported translator whose translation is upper case.

It runs as a program of its own, for it imports TensorFlow:

python -m tests.serving.toy_export FOLDER [BEHIND]      # BEHIND is added to every translation, to tell versions apart
"""

import subprocess
import sys
from pathlib import Path

HYPOTHESES = 3
MAX_CHARACTERS = 200
ROOT = Path(__file__).parents[2]


def write_toy_export(folder: Path, behind: str = "") -> Path:
    """Writes the SavedModel from another process, so that this one stays without TensorFlow."""
    command = [sys.executable, "-m", "tests.serving.toy_export", str(folder), behind]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600, check=False)
    assert result.returncode == 0, result.stderr[-3000:]
    return folder


def main(folder: str, behind: str = ""):
    import tensorflow as tf

    text = tf.TensorSpec([None], tf.string)
    integer, number = tf.TensorSpec([None], tf.int32), tf.TensorSpec([None], tf.float32)

    def upper(texts):
        return tf.strings.upper(texts, encoding="utf-8") + behind

    def length(texts):
        return tf.strings.length(texts, unit="UTF8_CHAR")

    def found(translation, texts):
        return {
            "translation": translation,
            "score": -tf.cast(length(texts), tf.float32) / 10,
            "truncated": length(texts) > MAX_CHARACTERS,
        }

    def serving_default(text):
        return found(upper(text), text)

    def translate_with_options(text, beam_size, length_penalty, max_length):
        options = [tf.strings.as_string(beam_size), tf.strings.as_string(length_penalty, precision=2)]
        options = tf.strings.join([*options, tf.strings.as_string(max_length)], " ")
        return found(tf.strings.join([upper(text), " (", options, ")"]), text)

    def nbest(text):
        translations = tf.stack([upper(text), tf.strings.lower(text, encoding="utf-8"), text], axis=1)
        return {"translations": translations, "scores": found(text, text)["score"][:, None] - [0.0, 0.5, 2.0]}

    def score(source, target):
        words = tf.strings.split(target).row_lengths()
        return {
            "log_probability": -tf.abs(tf.cast(length(source) - length(target), tf.float32)) - 0.5,
            "token_count": tf.cast(words, tf.int32) + 1,
        }

    def pieces(texts):
        """Words in parts of at most four letters, as sub-words with a mark where a word begins."""
        marked = tf.strings.regex_replace("▁" + tf.strings.strip(texts), r"\s+", "▁")
        return tf.strings.split(tf.strings.regex_replace(marked, "▁?[^▁]{1,4}", r"\0 ")).to_tensor("")

    def align(text):
        source, target = pieces(text), pieces(upper(text))
        rows, columns = tf.range(tf.shape(target)[1]), tf.range(tf.shape(source)[1])
        distance = tf.cast(tf.abs(rows[:, None] - columns[None]), tf.float32)  # (T, S)
        weights = tf.exp(-2 * distance) * tf.cast(source != "", tf.float32)[:, None]  # (B, T, S)
        weights = tf.math.divide_no_nan(weights, tf.reduce_sum(weights, axis=-1, keepdims=True))
        weights *= tf.cast(target != "", tf.float32)[:, :, None]
        return {"translation": upper(text), "source_tokens": source, "target_tokens": target, "alignment": weights}

    # Beside those of a translator, signatures that show what the runtime and the server's rules do.

    def echo(text, number, integer, long, flag):
        return {"text_bytes": text, "text": text, "number": number, "integer": integer, "long": long, "flag": flag}

    def total(text):
        return {"count": tf.size(text), "text": text}

    def one(text):
        return {"text": text}

    def fails(text):
        with tf.control_dependencies([tf.debugging.assert_none_equal(text, "fail", message="was told to fail")]):
            return {"text": tf.identity(text)}

    def waits(text):
        """Counts to ten million for the text "wait"."""
        limit = tf.where(tf.reduce_any(text == "wait"), 10_000_000, 0)
        count = tf.while_loop(lambda count: count < limit, lambda count: [count + 1], [0])[0]
        return {"count": tf.fill(tf.shape(text), count)}

    double = tf.function(lambda number: 2 * number, jit_compile=True)

    def compiled(number):
        return {"number": double(number)}

    long, flag = tf.TensorSpec([None], tf.int64), tf.TensorSpec([None], tf.bool)
    arguments = {
        serving_default: [text],
        translate_with_options: [text, integer, number, integer],
        nbest: [text],
        score: [text, text],
        align: [text],
        echo: [text, number, integer, long, flag],
        total: [text],
        one: [text],
        fails: [text],
        waits: [text],
        compiled: [number],
    }
    module = tf.Module()
    functions = {function.__name__: tf.function(function, input_signature=specs) for function, specs in arguments.items()}
    module.functions = list(functions.values())
    tf.saved_model.save(module, folder, {name: function.get_concrete_function() for name, function in functions.items()})


if __name__ == "__main__":
    main(*sys.argv[1:])
