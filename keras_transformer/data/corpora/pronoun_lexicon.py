"""The nouns of the pronoun corpus, in classes of things of which the same can be said."""

from dataclasses import dataclass

MASCULINE, FEMININE, NEUTER = "masculine", "feminine", "neuter"


@dataclass(frozen=True)
class Noun:
    """A noun in both languages.

    Args:
        english: English singular.
        english_plural: English plural.
        german: German nominative singular.
        german_plural: German nominative plural.
        gender: `"masculine"`, `"feminine"` or `"neuter"`, of the German noun.
        german_oblique: German accusative and dative singular, where they differ from the nominative (den Bären).
    """

    english: str
    english_plural: str
    german: str
    german_plural: str
    gender: str
    german_oblique: str = ""


ANIMAL = Noun("animal", "animals", "Tier", "Tiere", NEUTER)
LARGE_ANIMALS = (
    Noun("bear", "bears", "Bär", "Bären", MASCULINE, "Bären"),
    Noun("donkey", "donkeys", "Esel", "Esel", MASCULINE),
    Noun("elephant", "elephants", "Elefant", "Elefanten", MASCULINE, "Elefanten"),
    Noun("cow", "cows", "Kuh", "Kühe", FEMININE),
    Noun("goat", "goats", "Ziege", "Ziegen", FEMININE),
    Noun("horse", "horses", "Pferd", "Pferde", NEUTER),
    Noun("pony", "ponies", "Pony", "Ponys", NEUTER),
    Noun("camel", "camels", "Kamel", "Kamele", NEUTER),
)
SMALL_ANIMALS = (
    Noun("dog", "dogs", "Hund", "Hunde", MASCULINE),
    Noun("fox", "foxes", "Fuchs", "Füchse", MASCULINE),
    Noun("frog", "frogs", "Frosch", "Frösche", MASCULINE),
    Noun("cat", "cats", "Katze", "Katzen", FEMININE),
    Noun("duck", "ducks", "Ente", "Enten", FEMININE),
    Noun("mouse", "mice", "Maus", "Mäuse", FEMININE),
    Noun("turtle", "turtles", "Schildkröte", "Schildkröten", FEMININE),
    Noun("rabbit", "rabbits", "Kaninchen", "Kaninchen", NEUTER),
    Noun("chicken", "chickens", "Huhn", "Hühner", NEUTER),
)
ANIMALS = (ANIMAL, *LARGE_ANIMALS, *SMALL_ANIMALS)

VEHICLES = (
    Noun("bus", "buses", "Bus", "Busse", MASCULINE),
    Noun("truck", "trucks", "Lastwagen", "Lastwagen", MASCULINE),
    Noun("tractor", "tractors", "Traktor", "Traktoren", MASCULINE),
    Noun("wagon", "wagons", "Wagen", "Wagen", MASCULINE),
    Noun("carriage", "carriages", "Kutsche", "Kutschen", FEMININE),
    Noun("limousine", "limousines", "Limousine", "Limousinen", FEMININE),
    Noun("tram", "trams", "Straßenbahn", "Straßenbahnen", FEMININE),
    Noun("car", "cars", "Auto", "Autos", NEUTER),
    Noun("taxi", "taxis", "Taxi", "Taxis", NEUTER),
    Noun("camper", "campers", "Wohnmobil", "Wohnmobile", NEUTER),
    Noun("motorcycle", "motorcycles", "Motorrad", "Motorräder", NEUTER),
)

BRIDGE = Noun("bridge", "bridges", "Brücke", "Brücken", FEMININE)
ROADS = (
    Noun("street", "streets", "Straße", "Straßen", FEMININE),
    BRIDGE,
    Noun("alley", "alleys", "Gasse", "Gassen", FEMININE),
    Noun("path", "paths", "Weg", "Wege", MASCULINE),
    Noun("trail", "trails", "Pfad", "Pfade", MASCULINE),
)
WATERS = (
    Noun("river", "rivers", "Fluss", "Flüsse", MASCULINE),
    Noun("canal", "canals", "Kanal", "Kanäle", MASCULINE),
    Noun("bay", "bays", "Bucht", "Buchten", FEMININE),
    Noun("lagoon", "lagoons", "Lagune", "Lagunen", FEMININE),
    Noun("sea", "seas", "Meer", "Meere", NEUTER),
    Noun("pool", "pools", "Becken", "Becken", NEUTER),
)
GROUNDS = (
    Noun("yard", "yards", "Hof", "Höfe", MASCULINE),
    Noun("beach", "beaches", "Strand", "Strände", MASCULINE),
    Noun("meadow", "meadows", "Wiese", "Wiesen", FEMININE),
    Noun("field", "fields", "Feld", "Felder", NEUTER),
    Noun("plateau", "plateaus", "Plateau", "Plateaus", NEUTER),
)

GATE = Noun("gate", "gates", "Tor", "Tore", NEUTER)
OPENINGS = (
    Noun("tunnel", "tunnels", "Tunnel", "Tunnel", MASCULINE),
    Noun("archway", "archways", "Torbogen", "Torbögen", MASCULINE),
    Noun("door", "doors", "Tür", "Türen", FEMININE),
    Noun("underpass", "underpasses", "Unterführung", "Unterführungen", FEMININE),
    Noun("opening", "openings", "Öffnung", "Öffnungen", FEMININE),
    GATE,
    Noun("portal", "portals", "Portal", "Portale", NEUTER),
)
WALL = Noun("wall", "walls", "Mauer", "Mauern", FEMININE)
OBSTACLES = (
    Noun("fence", "fences", "Zaun", "Zäune", MASCULINE),
    Noun("beam", "beams", "Balken", "Balken", MASCULINE),
    WALL,
    Noun("barrier", "barriers", "Barriere", "Barrieren", FEMININE),
    Noun("hurdle", "hurdles", "Hürde", "Hürden", FEMININE),
    GATE,
    Noun("railing", "railings", "Geländer", "Geländer", NEUTER),
    Noun("obstacle", "obstacles", "Hindernis", "Hindernisse", NEUTER),
)

ITEMS = (
    Noun("trophy", "trophies", "Pokal", "Pokale", MASCULINE),
    Noun("carpet", "carpets", "Teppich", "Teppiche", MASCULINE),
    Noun("mirror", "mirrors", "Spiegel", "Spiegel", MASCULINE),
    Noun("lamp", "lamps", "Lampe", "Lampen", FEMININE),
    Noun("vase", "vases", "Vase", "Vasen", FEMININE),
    Noun("guitar", "guitars", "Gitarre", "Gitarren", FEMININE),
    Noun("clock", "clocks", "Uhr", "Uhren", FEMININE),
    Noun("book", "books", "Buch", "Bücher", NEUTER),
    Noun("picture", "pictures", "Bild", "Bilder", NEUTER),
    Noun("pillow", "pillows", "Kissen", "Kissen", NEUTER),
    Noun("radio", "radios", "Radio", "Radios", NEUTER),
)
BASKET = Noun("basket", "baskets", "Korb", "Körbe", MASCULINE)
BOX = Noun("box", "boxes", "Kiste", "Kisten", FEMININE)
DRAWER = Noun("drawer", "drawers", "Schublade", "Schubladen", FEMININE)
CONTAINERS = (
    Noun("suitcase", "suitcases", "Koffer", "Koffer", MASCULINE),
    Noun("backpack", "backpacks", "Rucksack", "Rucksäcke", MASCULINE),
    BASKET,
    BOX,
    DRAWER,
    Noun("bag", "bags", "Tasche", "Taschen", FEMININE),
    Noun("compartment", "compartments", "Fach", "Fächer", NEUTER),
    Noun("barrel", "barrels", "Fass", "Fässer", NEUTER),
    Noun("parcel", "parcels", "Paket", "Pakete", NEUTER),
)
BEDS = (
    BASKET,
    Noun("cage", "cages", "Käfig", "Käfige", MASCULINE),
    BOX,
    DRAWER,
    Noun("hammock", "hammocks", "Hängematte", "Hängematten", FEMININE),
    Noun("bed", "beds", "Bett", "Betten", NEUTER),
    Noun("tent", "tents", "Zelt", "Zelte", NEUTER),
    Noun("nest", "nests", "Nest", "Nester", NEUTER),
)
FOODS = (
    Noun("apple", "apples", "Apfel", "Äpfel", MASCULINE),
    Noun("mushroom", "mushrooms", "Pilz", "Pilze", MASCULINE),
    Noun("pancake", "pancakes", "Pfannkuchen", "Pfannkuchen", MASCULINE),
    Noun("pear", "pears", "Birne", "Birnen", FEMININE),
    Noun("carrot", "carrots", "Karotte", "Karotten", FEMININE),
    Noun("sausage", "sausages", "Wurst", "Würste", FEMININE),
    Noun("potato", "potatoes", "Kartoffel", "Kartoffeln", FEMININE),
    Noun("roll", "rolls", "Brötchen", "Brötchen", NEUTER),
    Noun("cookie", "cookies", "Plätzchen", "Plätzchen", NEUTER),
    Noun("radish", "radishes", "Radieschen", "Radieschen", NEUTER),
)
ROOMS = (
    Noun("stable", "stables", "Stall", "Ställe", MASCULINE),
    Noun("cellar", "cellars", "Keller", "Keller", MASCULINE),
    Noun("barn", "barns", "Scheune", "Scheunen", FEMININE),
    Noun("cave", "caves", "Höhle", "Höhlen", FEMININE),
    Noun("house", "houses", "Haus", "Häuser", NEUTER),
    Noun("room", "rooms", "Zimmer", "Zimmer", NEUTER),
)
RAMP = Noun("ramp", "ramps", "Rampe", "Rampen", FEMININE)
SCAFFOLD = Noun("scaffold", "scaffolds", "Gerüst", "Gerüste", NEUTER)
HEIGHTS = (
    Noun("hill", "hills", "Hügel", "Hügel", MASCULINE),
    Noun("tree", "trees", "Baum", "Bäume", MASCULINE),
    Noun("ladder", "ladders", "Leiter", "Leitern", FEMININE),
    WALL,
    Noun("roof", "roofs", "Dach", "Dächer", NEUTER),
    SCAFFOLD,
)
SUPPORTS = (
    Noun("jetty", "jetties", "Steg", "Stege", MASCULINE),
    Noun("trailer", "trailers", "Anhänger", "Anhänger", MASCULINE),
    BRIDGE,
    RAMP,
    SCAFFOLD,
    Noun("raft", "rafts", "Floß", "Flöße", NEUTER),
)
