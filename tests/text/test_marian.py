"""Marian tokenizers: the ids and texts of Hugging Face's `MarianTokenizer`, in Python and in a graph."""

import json
import pickle
import random
import sys
import zipfile

import numpy as np
import pytest

from keras_transformer.serving.graph_checks import known_operations
from keras_transformer.text import MarianTokenizer, Tokenizer, TokenizerPair, load_tokenizer
from keras_transformer.text.marian import MODEL_FILE, VOCABULARY_FILE
from keras_transformer.text.marian_graph import BLANK, StringTable
from keras_transformer.text.strings import clean_text
from tests.bridges.marian_checkpoints import CODES, END, PAD, UNKNOWN, piece_model, vocabulary, write_vocabularies
from tests.text.samples import hostile_bytes, hostile_strings, sentences

transformers = pytest.importorskip("transformers")
tf = pytest.importorskip("tensorflow")

SIDES = ("source", "target")


@pytest.fixture(scope="module", params=[False, True], ids=["shared", "separate"])
def pair(request, tmp_path_factory):
    """Our tokenizers and the one of Hugging Face, from the same files."""
    folder = tmp_path_factory.mktemp("tokenizer")
    write_vocabularies(folder, request.param)
    names = ("vocab.json", "target_vocab.json" if request.param else "vocab.json")
    tables = [json.loads((folder / name).read_text(encoding="utf8")) for name in names]
    ours = [MarianTokenizer(piece_model(side), list(table)) for side, table in zip(SIDES, tables, strict=True)]
    return TokenizerPair(*ours), transformers.MarianTokenizer.from_pretrained(folder)


@pytest.fixture(scope="module")
def tokenizer():
    return MarianTokenizer(piece_model("source"), list(vocabulary(SIDES)))


def marian_strings(count):
    """Hostile strings made of what has a meaning for these tokenizers."""
    chance = random.Random(5)
    parts = [
        *CODES,
        ">>",
        "<<",
        ">",
        "<",
        END,
        PAD,
        UNKNOWN,
        "<s>",
        "▁",
        " ",
        "  ",
        "\n",
        "\t",
        "ß",
        "w",
        "the",
        "☃",
        "☃☃",
        "Straße",
    ]
    fixed = [
        ">>deu<<",
        ">>deu<< the cat",
        " >>deu<< the cat",
        ">>unheard_of<< the cat",
        ">><<",
        ">>><< a",
        ">>deu<<>>fra<< a",
        "a >>deu<< b",
        ">>deu the cat <<",
        ">>\n<< a",
        f"a{END}>>fra<< b{PAD}",
        f">>deu{END}<< b",
        f"{UNKNOWN}{UNKNOWN} {END}",
        "<</s>>",
        "the straße and the W",
    ]
    return fixed + ["".join(chance.choices(parts, k=chance.randrange(8))) for _ in range(count)]


def expected_ids(theirs, texts, side):
    """What Hugging Face makes of valid Unicode, without the end."""
    texts = [clean_text(text) for text in texts]
    rows = theirs(texts)["input_ids"] if side == "source" else theirs(text_target=texts)["input_ids"]
    assert all(row[-1] == 0 for row in rows)
    return [row[:-1] for row in rows]


def in_graph(tokenizer, texts):
    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
    def run(strings):
        return tokenizer.graph_encode(strings)

    ids = run(tf.constant(texts, tf.string))
    assert ids.dtype == tf.int32
    return ids.to_list()


@pytest.mark.proof("Texts are cut as Hugging Face's MarianTokenizer cuts them, id for id, in Python and in the graph")
def test_ids_are_those_of_hugging_face(pair, size, seen):
    ours, theirs = pair
    lines = sentences(size(300, full=5_000), seed=8)
    hostile = [
        *hostile_strings(size(300, full=5_000)),
        *marian_strings(size(300, full=5_000)),
        *hostile_bytes(size(200, full=5_000)),
    ]
    texts = [*lines, *hostile]
    for side in SIDES:
        expected = expected_ids(theirs, texts, side)
        tokenizer = getattr(ours, side)
        assert tokenizer.encode(texts) == expected
        assert in_graph(tokenizer, texts) == expected
        ids, lengths = tokenizer.encode_batch(texts)
        assert np.split(ids, np.cumsum(lengths)[:-1])[0].tolist() == expected[0] and lengths.sum() == len(ids)
    unknown = sum(ours.source.unknown_id in row for row in expected)
    seen(f"{len(lines):,} lines and {len(hostile):,} hostile strings on either side, {unknown:,} with something unknown")


@pytest.mark.proof("Any ids decode to the text of Hugging Face's MarianTokenizer, in Python and in the graph")
@pytest.mark.parametrize("tidy", [False, True], ids=["plain", "tidied"])
def test_text_is_that_of_hugging_face(pair, tidy, size, seen):
    ours, theirs = pair
    target = MarianTokenizer.from_serialized(ours.target.serialized)
    if tidy:
        tokens = target.tokens(np.arange(target.vocabulary_size))
        target = MarianTokenizer(piece_model("target"), tokens, tidy=True)
    chance = random.Random(4)
    kinds = [range(1, target.vocabulary_size), [1, target.pad_id, *range(1, 40)], range(target.vocabulary_size)]
    rows = [chance.choices(chance.choice(kinds), k=12) for _ in range(size(500, full=5_000))]
    rows += [row + [0] * (12 - len(row)) for row in (line[:12] for line in target.encode(sentences(size(300, full=5_000))))]
    cut = [row[: row.index(0)] if 0 in row else row for row in rows]
    expected = [theirs.decode(row, skip_special_tokens=True, clean_up_tokenization_spaces=tidy) for row in cut]
    assert target.decode(rows) == expected
    for ids in (tf.constant(rows, tf.int32), tf.constant(rows, tf.int64), tf.ragged.constant(rows)):
        assert [text.decode() for text in target.graph_decode(ids).numpy()] == expected
    seen(f"{len(rows):,} rows of ids")


def test_a_piece_of_the_other_language_keeps_its_id(tokenizer):
    known = vocabulary(SIDES)
    assert "ß" in known and "ß" not in vocabulary(("source",))
    assert tokenizer.encode("ß") == [known["▁"], known["ß"]] == in_graph(tokenizer, ["ß"])[0]


def test_no_normalization_of_punctuation(tokenizer, pair, monkeypatch):
    """Hugging Face sets up a normalizer if sacremoses is there, and never calls it."""
    theirs = pair[1]
    monkeypatch.setattr(theirs, "punc_normalizer", lambda text: pytest.fail("it was called"))
    assert theirs("« don\u2019t »")["input_ids"]


def test_what_no_text_means(tokenizer):
    assert tokenizer.encode("") == tokenizer.encode(" \t") == []
    assert in_graph(tokenizer, ["", " \t"]) == [[], []]
    assert tokenizer.graph_encode(tf.constant([], tf.string)).shape[0] == 0
    assert tokenizer.graph_decode(tf.zeros([0, 4], tf.int32)).shape == (0,)
    assert tokenizer.graph_decode(tf.zeros([2, 0], tf.int32)).numpy().tolist() == [b"", b""]
    assert tokenizer.decode([]) == ""


def test_special_ids(tokenizer):
    last = tokenizer.vocabulary_size - 1
    assert (tokenizer.end_id, tokenizer.unknown_id, tokenizer.pad_id, tokenizer.start_id) == (0, 1, last, last)
    assert tokenizer.language_codes == CODES
    words = tokenizer.encode("the cat")
    assert tokenizer.decode([last, *words, 1, 0, *words]) == "the cat"
    assert tokenizer.tokens([last, 0]) == [PAD, END]
    assert tokenizer.graph_tokens(tf.constant([[0, -1, last, last + 1]])).numpy().tolist() == [[b"</s>", b"", b"<pad>", b""]]
    assert tokenizer.graph_decode(tf.constant([[-1, *words, last + 1]])).numpy().tolist() == [b"the cat"]
    with pytest.raises(ValueError, match="Ids must be from 0"):
        tokenizer.decode([last + 1])
    with pytest.raises(ValueError, match="Ids must be integers"):
        tokenizer.decode([0.5])


def test_long_text(tokenizer):
    text = ">>deu<< " + "☃ the " * 17_000
    assert in_graph(tokenizer, [text, "", END * 3]) == tokenizer.encode([text, "", END * 3])


def test_files(tokenizer, tmp_path):
    tokenizer.save(tmp_path / "tokenizer.model")
    loaded = load_tokenizer(tmp_path / "tokenizer.model")
    assert loaded == tokenizer and loaded.fingerprint == tokenizer.fingerprint and hash(loaded) == hash(tokenizer)
    assert pickle.loads(pickle.dumps(tokenizer)) == tokenizer
    usual = Tokenizer.train(iter(sentences(50)), vocabulary_size=400)
    pair = TokenizerPair(tokenizer, MarianTokenizer(piece_model("target"), list(vocabulary(SIDES))))
    pair.save(tmp_path / "pair.model")
    first = (tmp_path / "pair.model").read_bytes()
    assert load_tokenizer(tmp_path / "pair.model") == pair != TokenizerPair(tokenizer, tokenizer)
    pair.save(tmp_path / "pair.model")
    assert (tmp_path / "pair.model").read_bytes() == first
    usual.save(tmp_path / "usual.model")
    assert load_tokenizer(tmp_path / "usual.model") == usual
    content = (tmp_path / "tokenizer.model").read_bytes()
    (tmp_path / "cut.model").write_bytes(content[: len(content) // 2])
    with pytest.raises(ValueError, match="not a whole file"):
        load_tokenizer(tmp_path / "cut.model")
    with pytest.raises(ValueError, match=r"not a whole file of `MarianTokenizer.save`"):
        MarianTokenizer.load(tmp_path / "pair.model")
    with zipfile.ZipFile(tmp_path / "deep.model", "w") as archive:
        archive.writestr(MODEL_FILE, piece_model("source"))
        archive.writestr(VOCABULARY_FILE, "[" * 100_000)
    with pytest.raises(ValueError, match=r"deep.model: not a whole file .*maximum recursion depth"):
        load_tokenizer(tmp_path / "deep.model")


def test_what_is_no_vocabulary():
    tokens = list(vocabulary(SIDES))
    for wrong, match in [
        ([*tokens, tokens[4]], "Each token must have one id"),
        ([*tokens, "\ud800"], "valid Unicode"),
        ([*tokens, 3], "valid Unicode"),
        (tokens[1:], "The token for end is not among"),
    ]:
        with pytest.raises(ValueError, match=match):
            MarianTokenizer(piece_model("source"), wrong)
    with pytest.raises(ValueError, match="not a whole SentencePiece model"):
        MarianTokenizer(piece_model("source")[:500], tokens)


def test_only_operations_that_old_servers_have(tokenizer):
    run = tf.function(
        lambda text: (tokenizer.graph_decode(tokenizer.graph_encode(text)), tokenizer.graph_tokens(tf.zeros([2], tf.int32)))
    )
    definition = run.get_concrete_function(tf.TensorSpec([None], tf.string)).graph.as_graph_def()
    nodes = [*definition.node, *(node for function in definition.library.function for node in function.node_def)]
    operations = {node.op for node in nodes}
    assert operations <= known_operations()
    assert not operations & {"Assert", "PyFunc", "EagerPyFunc", "HashTableV2"}


def test_blanks_are_those_of_python():
    everything = [chr(code) for code in range(sys.maxunicode + 1) if not 0xD800 <= code < 0xE000]
    is_blank = tf.strings.regex_full_match(tf.constant(everything), BLANK).numpy()
    assert [one for one, blank in zip(everything, is_blank, strict=True) if blank] == [
        one for one in everything if one.isspace()
    ]


def test_string_table(random):
    strings = tuple(f"token{number}" for number in range(3000))
    table = StringTable(strings)
    asked = [f"token{number}" for number in random.integers(0, 6000, 5000)]
    places = {string: place for place, string in enumerate(strings)}
    assert table(tf.constant(asked)).numpy().tolist() == [places.get(one, -1) for one in asked]
    assert table(tf.constant([], tf.string)).shape == (0,)
