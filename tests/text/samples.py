"""Texts for the tests of tokenizers: plausible ones to train on, and hostile ones."""

import random

WORDS = """
    the a cat dog house street bridge river mountain is was were runs ran sleeps crosses tired wide long because it she they
    and not over under quickly slowly der die das Katze Hund Haus Straße Brücke Fluß Gebirge ist war müde breit weil es sie und
    nicht über unter schnell langsam Größe naïve café 2024 3.5 (yes) don't
""".split()  # noqa: SIM905

# Everything that has a meaning of its own somewhere: blanks, controls, marks, joiners, specials, planes beyond the first.
ALPHABET = [
    *map(chr, range(0x300)),
    *map(chr, range(0x300, 0x330)),
    *map(chr, range(0x2000, 0x2070)),
    *"▁▅█\ufeff\ufffd\ufffe\uffff😀👩\u200d🚀가각ᄀ\u1161日本שלם\U0010ffff½…ﬁ²",
    *"<s></s><pad><unk><0x41>  \t\n",
]

# Beginnings, middles and ends of characters, surrogates and too long forms.
BYTES = b"\xe2\x96\x81\xf0\x9f\x98\x80\xed\xa0\x80\xc3\xa4\xf4\x90\xc0\xaf\xff\xfe\x00 a"


def sentences(count: int, seed: int = 0) -> list[str]:
    chance = random.Random(seed)
    return [" ".join(chance.choices(WORDS, k=chance.randint(3, 14))) + chance.choice([".", "?", "!", ""]) for _ in range(count)]


def hostile_strings(count: int, seed: int = 1) -> list[str]:
    chance = random.Random(seed)
    fixed = [
        "",
        " ",
        "   ",
        "\0",
        "\0\0 a",
        " a",
        "a ",
        "a  b",
        "▁",
        "▁▁ a",
        "\ufeff",
        "<s>",
        "</s> a <pad>",
        "e\u0301",
        "a" * 2000,
    ]
    return fixed + ["".join(chance.choices(ALPHABET, k=chance.randrange(40))) for _ in range(count)]


def hostile_bytes(count: int, seed: int = 2) -> list[bytes]:
    chance = random.Random(seed)
    anything = [chance.randbytes(chance.randrange(40)) for _ in range(count // 2)]
    return anything + [bytes(chance.choices(BYTES, k=chance.randrange(12))) for _ in range(count - count // 2)]


def hostile_ids(count: int, vocabulary_size: int, length: int = 12, seed: int = 3) -> list[list[int]]:
    """Rows of special ids, of byte pieces that make no character, and of anything at all."""
    chance = random.Random(seed)
    kinds = [range(4), range(4, 260), range(vocabulary_size), [0, 1, 3, *range(4, vocabulary_size)]]
    return [chance.choices(chance.choice(kinds), k=length) for _ in range(count)]
