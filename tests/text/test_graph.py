import numpy as np
import pytest

from tests.text.conftest import trained
from tests.text.samples import hostile_bytes, hostile_ids, hostile_strings, sentences

tf = pytest.importorskip("tensorflow")
pytest.importorskip("tensorflow_text")


def in_graph(tokenizer, texts):
    """Runs text through a traced function: ids and text."""

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
    def run(strings):
        ids = tokenizer.graph_encode(strings)
        return ids, tokenizer.graph_decode(ids)

    ids, decoded = run(tf.constant(texts, tf.string))
    assert ids.dtype == tf.int32
    return ids.to_list(), [text.decode("utf-8") for text in decoded.numpy()]


@pytest.mark.proof("Python ids and text equal the graph's for plain lines and for hostile strings, BPE and unigram")
def test_graph_gives_the_ids_and_the_text_of_python(any_tokenizer, size, seen):
    lines = sentences(size(500, full=10_000), seed=9)
    strings = hostile_strings(size(500, full=20_000))
    raw = hostile_bytes(size(500, full=20_000))
    texts = [*lines, *strings, *raw]
    ids, decoded = in_graph(any_tokenizer, texts)
    assert ids == any_tokenizer.encode(texts)
    assert decoded == any_tokenizer.decode(ids) == any_tokenizer.normalize(texts)
    seen(f"{len(lines):,} lines, {len(strings):,} strings of hostile Unicode and {len(raw):,} of hostile bytes: all equal")


@pytest.mark.proof("Any ids decode to the same valid UTF-8 in Python and in the graph: special ids, lone bytes, anything")
def test_graph_decodes_any_ids_as_python_does(any_tokenizer, size, seen):
    rows = hostile_ids(size(2000, full=50_000), any_tokenizer.vocabulary_size)
    expected = any_tokenizer.decode(rows)
    for ids in (tf.constant(rows, tf.int32), tf.constant(rows, tf.int64), tf.ragged.constant(rows)):
        assert [text.decode("utf-8") for text in any_tokenizer.graph_decode(ids).numpy()] == expected
    broken = sum("\ufffd" in text for text in expected)
    seen(f"{len(rows):,} rows of ids, {broken:,} of them with bytes that make no character")


def test_graph_skips_pad_and_start_and_stops_at_the_end(tokenizer):
    words = tokenizer.encode("the cat")
    rows = [[1, *words, 2, 0, 0], [0, 1, *words, 2, 3], [2, *words, 0, 0, 0], [0] * (len(words) + 4)]
    rows = [row[: len(words) + 4] for row in rows]
    assert tokenizer.graph_decode(tf.constant(rows)).numpy().tolist() == [b"the cat", b"the cat", b"", b""]


def test_graph_leaves_out_ids_outside_the_vocabulary(tokenizer):
    rows = tf.constant([[-1, *tokenizer.encode("the"), 10**6, tokenizer.vocabulary_size]], tf.int64)
    assert tokenizer.graph_decode(rows).numpy().tolist() == [b"the"]


def test_empty_batches_and_rows(tokenizer):
    assert tokenizer.graph_encode(tf.constant([], tf.string)).shape[0] == 0
    assert tokenizer.graph_decode(tf.zeros([0, 4], tf.int32)).shape == (0,)
    assert tokenizer.graph_decode(tf.zeros([2, 0], tf.int32)).numpy().tolist() == [b"", b""]
    assert tokenizer.graph_encode(["", "a"]).to_list() == [[], tokenizer.encode("a")]


def test_a_tokenizer_first_used_inside_a_function_outlives_its_trace(model):
    tokenizer = type(trained(model, "nfc"))(trained(model, "nfc").serialized)
    first = tf.function(tokenizer.graph_encode)(tf.constant(["the cat"])).to_list()
    second = tf.function(tokenizer.graph_encode)(tf.constant(["the cat", "a"])).to_list()
    assert first == second[:1] == [tokenizer.encode("the cat")]


def test_text_of_a_hundred_thousand_characters(tokenizer):
    text = "Größe " * 16_667
    ids, decoded = in_graph(tokenizer, [text, ""])
    assert ids == tokenizer.encode([text, ""])
    assert decoded == [text.strip(), ""]


def test_in_a_saved_model(tokenizer, tmp_path):
    module = tf.Module()
    other = trained("bpe", "identity")

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
    def serve(text):
        ids = tokenizer.graph_encode(text)
        return {
            "ids": ids.to_tensor(),
            "text": tokenizer.graph_decode(ids),
            "other": other.graph_decode(other.graph_encode(text)),
        }

    module.serve = serve
    tf.saved_model.save(module, str(tmp_path / "1"), signatures=serve)
    served = tf.saved_model.load(str(tmp_path / "1")).signatures["serving_default"]
    texts = [*sentences(20), *hostile_bytes(20)]
    result = served(tf.constant(texts))
    assert [text.decode() for text in result["text"].numpy()] == tokenizer.normalize(texts)
    assert [text.decode() for text in result["other"].numpy()] == other.normalize(texts)
    expected = tokenizer.encode(texts)
    assert np.array_equal(np.count_nonzero(result["ids"].numpy(), axis=1), [len(ids) for ids in expected])


def test_only_ops_that_old_servers_have(tokenizer):
    run = tf.function(lambda text: tokenizer.graph_decode(tokenizer.graph_encode(text)))
    graph = run.get_concrete_function(tf.TensorSpec([None], tf.string)).graph
    definition = graph.as_graph_def()
    nodes = [*definition.node, *(node for function in definition.library.function for node in function.node_def)]
    ops = {node.op for node in nodes}
    assert {op for op in ops if "entencepiece" in op} == {"SentencepieceOp", "SentencepieceTokenizeOp"}
    assert not ops & {"PyFunc", "EagerPyFunc", "Assert"}


def test_tokenizers_survive_seeding(tokenizer):
    first = tokenizer.graph_encode(["the cat"]).to_list()
    tf.random.set_seed(1)  # Clears the cache of eager ops.
    assert tokenizer.graph_encode(["the cat"]).to_list() == first
