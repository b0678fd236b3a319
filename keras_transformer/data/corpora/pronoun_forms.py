"""The sentence forms of the pronoun corpus: who does what to whom, and what can be the reason on either side."""

from dataclasses import dataclass

from keras_transformer.data.corpora import pronoun_lexicon as lexicon
from keras_transformer.data.corpora.pronoun_lexicon import Noun

GERMAN_ADJECTIVES = {
    "big": "groß",
    "bitter": "bitter",
    "bright": "hell",
    "bulky": "sperrig",
    "busy": "belebt",
    "clever": "schlau",
    "clumsy": "ungeschickt",
    "dangerous": "gefährlich",
    "dark": "dunkel",
    "deep": "tief",
    "dry": "trocken",
    "exhausted": "erschöpft",
    "fast": "schnell",
    "full": "voll",
    "gloomy": "düster",
    "hard": "hart",
    "heavy": "schwer",
    "high": "hoch",
    "hungry": "hungrig",
    "ill": "krank",
    "lazy": "faul",
    "loud": "laut",
    "low": "niedrig",
    "muddy": "schlammig",
    "murky": "trüb",
    "narrow": "schmal",
    "nervous": "nervös",
    "restless": "unruhig",
    "shy": "scheu",
    "sleepy": "schläfrig",
    "slippery": "rutschig",
    "slow": "langsam",
    "small": "klein",
    "steep": "steil",
    "stony": "steinig",
    "strong": "stark",
    "tall": "hoch",
    "thirsty": "durstig",
    "timid": "ängstlich",
    "tiny": "winzig",
    "tired": "müde",
    "uncomfortable": "unbequem",
    "unstable": "instabil",
    "weak": "schwach",
    "wide": "breit",
    "wild": "wild",
    "windy": "windig",
    "young": "jung",
}


@dataclass(frozen=True)
class SentenceForm:
    """A main clause with two nouns, and the adjectives that make either of them the reason.

    An adjective stands under one of the two roles only: said in this form, it can mean nothing but the noun in that role.

    Args:
        name: Name of the form.
        subjects: Nouns that can be the subject.
        objects: Nouns that can be the object.
        english: English verb with its preposition: the infinitive of a negated form, else the past tense.
        german: German past tense, third person singular and plural.
        subject_adjectives: English adjectives that tell that the pronoun means the subject.
        object_adjectives: English adjectives that tell that the pronoun means the object.
        preposition: German preposition before the object, if any.
        case: Case of the German object.
        particle: Particle of a separable German verb, at the end of the main clause.
        negated: Whether the main clause is negated.
    """

    name: str
    subjects: tuple[Noun, ...]
    objects: tuple[Noun, ...]
    english: str
    german: tuple[str, str]
    subject_adjectives: tuple[str, ...]
    object_adjectives: tuple[str, ...]
    preposition: str = ""
    case: str = "accusative"
    particle: str = ""
    negated: bool = True

    def adjectives(self, role: str) -> tuple[str, ...]:
        """Returns the adjectives that tell that the pronoun means the `"subject"` or the `"object"`."""
        return self.subject_adjectives if role == "subject" else self.object_adjectives


FORMS = (
    SentenceForm(
        name="animal_crosses_road",
        subjects=lexicon.ANIMALS,
        objects=lexicon.ROADS,
        english="cross",
        german=("überquerte", "überquerten"),
        subject_adjectives=("tired", "lazy", "timid", "nervous", "ill", "young"),
        object_adjectives=("wide", "busy", "slippery", "steep"),
    ),
    SentenceForm(
        name="animal_crosses_water",
        subjects=lexicon.ANIMALS,
        objects=lexicon.WATERS,
        english="cross",
        german=("überquerte", "überquerten"),
        subject_adjectives=("tired", "weak", "timid", "exhausted"),
        object_adjectives=("wide", "deep", "murky"),
    ),
    SentenceForm(
        name="animal_runs_across_ground",
        subjects=lexicon.ANIMALS,
        objects=lexicon.GROUNDS,
        english="run across",
        german=("lief", "liefen"),
        subject_adjectives=("shy", "sleepy", "weak", "exhausted"),
        object_adjectives=("muddy", "stony", "windy"),
        preposition="über",
    ),
    SentenceForm(
        name="vehicle_crosses_road",
        subjects=lexicon.VEHICLES,
        objects=lexicon.ROADS,
        english="cross",
        german=("überquerte", "überquerten"),
        subject_adjectives=("heavy", "slow"),
        object_adjectives=("narrow", "slippery", "steep"),
    ),
    SentenceForm(
        name="item_fits_into_container",
        subjects=lexicon.ITEMS,
        objects=lexicon.CONTAINERS,
        english="fit into",
        german=("passte", "passten"),
        subject_adjectives=("big", "wide", "bulky"),
        object_adjectives=("small", "tiny", "narrow", "full"),
        preposition="in",
    ),
    SentenceForm(
        name="vehicle_fits_through_opening",
        subjects=lexicon.VEHICLES,
        objects=lexicon.OPENINGS,
        english="fit through",
        german=("passte", "passten"),
        subject_adjectives=("big", "wide", "tall"),
        object_adjectives=("narrow", "small", "low"),
        preposition="durch",
    ),
    SentenceForm(
        name="animal_jumps_over_obstacle",
        subjects=lexicon.ANIMALS,
        objects=lexicon.OBSTACLES,
        english="jump over",
        german=("sprang", "sprangen"),
        subject_adjectives=("tired", "lazy", "clumsy", "young"),
        object_adjectives=("high", "wide"),
        preposition="über",
    ),
    SentenceForm(
        name="obstacle_stops_animal",
        subjects=lexicon.OBSTACLES,
        objects=lexicon.ANIMALS,
        english="stop",
        german=("hielt", "hielten"),
        subject_adjectives=("low", "unstable"),
        object_adjectives=("fast", "strong", "clever", "wild"),
        particle="auf",
    ),
    SentenceForm(
        name="animal_eats_food",
        subjects=lexicon.ANIMALS,
        objects=lexicon.FOODS,
        english="eat",
        german=("fraß", "fraßen"),
        subject_adjectives=("ill", "nervous", "sleepy", "restless"),
        object_adjectives=("hard", "dry", "bitter", "big"),
    ),
    SentenceForm(
        name="animal_runs_away_from_vehicle",
        subjects=lexicon.ANIMALS,
        objects=lexicon.VEHICLES,
        english="ran away from",
        german=("lief", "liefen"),
        subject_adjectives=("timid", "shy", "nervous"),
        object_adjectives=("loud", "big", "dangerous"),
        preposition="vor",
        case="dative",
        particle="weg",
        negated=False,
    ),
    SentenceForm(
        name="vehicle_frightens_animal",
        subjects=lexicon.VEHICLES,
        objects=lexicon.ANIMALS,
        english="frightened",
        german=("erschreckte", "erschreckten"),
        subject_adjectives=("loud", "big", "fast"),
        object_adjectives=("timid", "shy", "young"),
        negated=False,
    ),
    SentenceForm(
        name="animal_pulls_vehicle",
        subjects=lexicon.LARGE_ANIMALS,
        objects=lexicon.VEHICLES,
        english="pull",
        german=("zog", "zogen"),
        subject_adjectives=("tired", "weak", "lazy", "ill"),
        object_adjectives=("heavy", "big"),
    ),
    SentenceForm(
        name="animal_sleeps_in_bed",
        subjects=(lexicon.ANIMAL, *lexicon.SMALL_ANIMALS),
        objects=lexicon.BEDS,
        english="sleep in",
        german=("schlief", "schliefen"),
        subject_adjectives=("nervous", "hungry", "thirsty", "restless"),
        object_adjectives=("small", "uncomfortable"),
        preposition="in",
        case="dative",
    ),
    SentenceForm(
        name="animal_enters_room",
        subjects=lexicon.ANIMALS,
        objects=lexicon.ROOMS,
        english="enter",
        german=("betrat", "betraten"),
        subject_adjectives=("shy", "timid", "nervous", "lazy"),
        object_adjectives=("dark", "bright", "gloomy"),
    ),
    SentenceForm(
        name="room_attracts_animal",
        subjects=lexicon.ROOMS,
        objects=lexicon.ANIMALS,
        english="attract",
        german=("lockte", "lockten"),
        subject_adjectives=("dark", "bright", "gloomy"),
        object_adjectives=("shy", "timid", "lazy"),
        particle="an",
    ),
    SentenceForm(
        name="animal_climbs_height",
        subjects=lexicon.ANIMALS,
        objects=lexicon.HEIGHTS,
        english="climb",
        german=("kletterte", "kletterten"),
        subject_adjectives=("tired", "clumsy", "exhausted", "sleepy"),
        object_adjectives=("high", "slippery"),
        preposition="auf",
    ),
    SentenceForm(
        name="support_carries_vehicle",
        subjects=lexicon.SUPPORTS,
        objects=lexicon.VEHICLES,
        english="carry",
        german=("trug", "trugen"),
        subject_adjectives=("weak", "unstable"),
        object_adjectives=("heavy", "big"),
    ),
)
