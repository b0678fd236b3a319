"""A small reader of German, written without a look at the grammar that it checks."""

import functools
import re
from dataclasses import dataclass

# English singular, German singular, German plural.
DER = """
bear Bär Bären, donkey Esel Esel, elephant Elefant Elefanten, dog Hund Hunde, fox Fuchs Füchse, frog Frosch Frösche,
bus Bus Busse, truck Lastwagen Lastwagen, tractor Traktor Traktoren, wagon Wagen Wagen, path Weg Wege, trail Pfad Pfade,
river Fluss Flüsse, canal Kanal Kanäle, yard Hof Höfe, beach Strand Strände, tunnel Tunnel Tunnel, archway Torbogen Torbögen,
fence Zaun Zäune, beam Balken Balken, trophy Pokal Pokale, carpet Teppich Teppiche, mirror Spiegel Spiegel, basket Korb Körbe,
suitcase Koffer Koffer, backpack Rucksack Rucksäcke, cage Käfig Käfige, apple Apfel Äpfel, mushroom Pilz Pilze,
pancake Pfannkuchen Pfannkuchen, stable Stall Ställe, cellar Keller Keller, hill Hügel Hügel, tree Baum Bäume,
jetty Steg Stege, trailer Anhänger Anhänger
"""
DIE = """
cow Kuh Kühe, goat Ziege Ziegen, cat Katze Katzen, duck Ente Enten, mouse Maus Mäuse, turtle Schildkröte Schildkröten,
carriage Kutsche Kutschen, limousine Limousine Limousinen, tram Straßenbahn Straßenbahnen, bridge Brücke Brücken,
street Straße Straßen, alley Gasse Gassen, bay Bucht Buchten, lagoon Lagune Lagunen, meadow Wiese Wiesen, door Tür Türen,
underpass Unterführung Unterführungen, opening Öffnung Öffnungen, wall Mauer Mauern, barrier Barriere Barrieren,
hurdle Hürde Hürden, lamp Lampe Lampen, vase Vase Vasen, guitar Gitarre Gitarren, clock Uhr Uhren, box Kiste Kisten,
drawer Schublade Schubladen, bag Tasche Taschen, hammock Hängematte Hängematten, pear Birne Birnen, carrot Karotte Karotten,
sausage Wurst Würste, potato Kartoffel Kartoffeln, barn Scheune Scheunen, cave Höhle Höhlen, ramp Rampe Rampen,
ladder Leiter Leitern
"""
DAS = """
animal Tier Tiere, horse Pferd Pferde, pony Pony Ponys, camel Kamel Kamele, rabbit Kaninchen Kaninchen, chicken Huhn Hühner,
car Auto Autos, taxi Taxi Taxis, camper Wohnmobil Wohnmobile, motorcycle Motorrad Motorräder, sea Meer Meere,
pool Becken Becken, field Feld Felder, plateau Plateau Plateaus, gate Tor Tore, portal Portal Portale,
railing Geländer Geländer, obstacle Hindernis Hindernisse, book Buch Bücher, picture Bild Bilder, pillow Kissen Kissen,
radio Radio Radios, compartment Fach Fächer, barrel Fass Fässer, parcel Paket Pakete, bed Bett Betten, tent Zelt Zelte,
nest Nest Nester, roll Brötchen Brötchen, cookie Plätzchen Plätzchen, radish Radieschen Radieschen, house Haus Häuser,
room Zimmer Zimmer, roof Dach Dächer, scaffold Gerüst Gerüste, raft Floß Flöße
"""
WEAK = {"Bär": "Bären", "Elefant": "Elefanten"}

GENDERS = {}  # English singular -> "m", "f", "n"
GERMAN = {}  # English singular -> German singular, German plural
for gender, table in {"m": DER, "f": DIE, "n": DAS}.items():
    for entry in table.replace("\n", " ").split(","):
        english, singular, plural = entry.split()
        GENDERS[english], GERMAN[english] = gender, (singular, plural)

PRONOUN_OF = {"m": "er", "f": "sie", "n": "es", "p": "sie"}
# What an article can stand for: gender (or "p" for the plural) and case.
ARTICLES = {
    "der": {("m", "nominative"), ("f", "dative")},
    "die": {("f", "nominative"), ("f", "accusative"), ("p", "nominative"), ("p", "accusative")},
    "das": {("n", "nominative"), ("n", "accusative")},
    "den": {("m", "accusative"), ("p", "dative")},
    "dem": {("m", "dative"), ("n", "dative")},
}
# Verb in the singular and the plural, preposition and case of the object, particle, whether negated.
VERBS = [
    ("überquerte", "überquerten", "", "accusative", "", True),
    ("lief", "liefen", "über", "accusative", "", True),
    ("passte", "passten", "in", "accusative", "", True),
    ("passte", "passten", "durch", "accusative", "", True),
    ("sprang", "sprangen", "über", "accusative", "", True),
    ("hielt", "hielten", "", "accusative", "auf", True),
    ("fraß", "fraßen", "", "accusative", "", True),
    ("lief", "liefen", "vor", "dative", "weg", False),
    ("erschreckte", "erschreckten", "", "accusative", "", False),
    ("zog", "zogen", "", "accusative", "", True),
    ("schlief", "schliefen", "in", "dative", "", True),
    ("betrat", "betraten", "", "accusative", "", True),
    ("lockte", "lockten", "", "accusative", "an", True),
    ("kletterte", "kletterten", "auf", "accusative", "", True),
    ("trug", "trugen", "", "accusative", "", True),
]


@dataclass
class Reading:
    """What a reader understands of a sentence; nouns are in English, numbers "s" or "p"."""

    subject: str
    subject_number: str
    object: str
    object_number: str
    pronoun: str
    adjective: str
    copula: str


def read(sentence: str) -> Reading:
    """Reads a sentence, and fails at the first thing that is not German."""
    assert sentence.endswith(".") and sentence.count(",") == 1, sentence
    assert sentence[0].isupper(), sentence
    clauses = (sentence[0].lower() + sentence[1:-1]).split(", ")
    reason_first = clauses[0].split()[0] in ("weil", "da")
    reason, main = clauses if reason_first else reversed(clauses)
    conjunction, pronoun, too, adjective, copula = reason.split()  # The verb is the last word.
    assert conjunction in ("weil", "da") and pronoun in ("er", "sie", "es") and too == "zu", sentence
    assert copula in ("war", "waren"), sentence
    words = re.sub(r"\bins\b", "in das", re.sub(r"\bim\b", "in dem", main)).split()
    assert "in das" not in main and "in dem" not in main, sentence
    # The verb is the second constituent: after the subject, or after the reason.
    verb, subject, rest = (words[0], words[1:3], words[3:]) if reason_first else (words[2], words[:2], words[3:])
    number, case, noun_phrase = read_predicate(verb, rest)
    subject_noun, subject_number = read_noun_phrase(*subject, "nominative")
    assert subject_number == number, sentence
    object_noun, object_number = read_noun_phrase(*noun_phrase, case)
    return Reading(subject_noun, subject_number, object_noun, object_number, pronoun, adjective, copula)


def read_predicate(verb, rest):
    """Returns the verb's number, the object's case and the object; the order of the words must be right."""
    for singular, plural, preposition, case, particle, negated in VERBS:
        if verb not in (singular, plural):
            continue
        before = ["nicht"] * (negated and bool(preposition)) + [preposition] * bool(preposition)
        after = ["nicht"] * (negated and not preposition) + [particle] * bool(particle)
        if (
            len(rest) == len(before) + 2 + len(after)
            and rest[: len(before)] == before
            and rest[len(rest) - len(after) :] == after
        ):
            return "s" if verb == singular else "p", case, rest[len(before) : len(before) + 2]
    raise AssertionError(f"not a German predicate: {verb} ... {' '.join(rest)}")


@functools.cache
def read_noun_phrase(article, form, case):
    """Returns the English noun and the number of an article and a noun that agree with each other in a case."""
    fits = [
        (english, "p" if gender == "p" else "s")
        for english in GERMAN
        for gender in (GENDERS[english], "p")
        if (gender, case) in ARTICLES[article] and noun_form(english, gender, case) == form
    ]
    assert len(fits) == 1, f"{article} {form} is not a noun phrase in the {case}"
    return fits[0]


def noun_form(english, gender, case):
    singular, plural = GERMAN[english]
    if gender != "p":
        return singular if case == "nominative" else WEAK.get(singular, singular)
    return plural + "n" if case == "dative" and plural[-1] not in "ns" else plural
