"""The calls of a client that hostile servers are tried with, and what may come of them."""

import math
import threading
import time
import traceback
import typing
import unicodedata

from keras_transformer.serving.answers import Alignment, Hypothesis, ModelVersion, ServedTranslation, TargetScore

TIMEOUT, LIMIT = 0.5, 2**20
HUNG = 30  # Seconds after which a call counts as one that never ends.
TEXTS = ["a house", "b"]
CALLS = {
    "translate": (lambda client: client.translate("the houses"), str),
    "translate several": (lambda client: client.translate(TEXTS, return_scores=True), list[ServedTranslation]),
    "translate with options": (lambda client: client.translate(TEXTS, beam_size=2), list[str]),
    "nbest": (lambda client: client.nbest(TEXTS), list[list[Hypothesis]]),
    "score": (lambda client: client.score(TEXTS, TEXTS), list[TargetScore]),
    "align": (lambda client: client.align(TEXTS), list[Alignment]),
    "status": (lambda client: client.status(), list[ModelVersion]),
    "metadata": (lambda client: client.metadata(), dict[str, dict]),
    "wait_until_ready": (lambda client: client.wait_until_ready(0), ModelVersion),
}


def fits(value, kind):
    """Tells whether a value is what the client's documentation says."""
    if kind in (str, float, int, bool):
        return type(value) is kind and (kind is not float or math.isfinite(value)) and str(value).encode() is not None
    if typing.get_origin(kind) is list:
        return type(value) is list and all(fits(item, kind.__args__[0]) for item in value)
    if typing.get_origin(kind) is dict:
        return all(set(sides) == {"inputs", "outputs"} and fits_sides(sides) for sides in value.values())
    if kind is Alignment and [len(row) for row in value.weights] != [len(value.source_tokens)] * len(value.target_tokens):
        return False
    return type(value) is kind and all(map(fits, value, typing.get_type_hints(kind).values()))


def fits_sides(sides):
    tensors = [tensor for side in sides.values() for tensor in side.values()]
    return all(fits(tensor["dtype"], str) and fits(tensor["shape"], list[int]) for tensor in tensors)


def outcome(call, client):
    """Returns what a call gives or raises, and the seconds that it took; fails if it never ends."""
    found = []

    def run():
        start = time.monotonic()
        try:
            result = call(client)
        except BaseException as error:  # noqa: BLE001
            result = error
        found.extend((result, time.monotonic() - start))

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(HUNG)
    assert not thread.is_alive(), "The call never ends"
    return found


def check_message(error):
    text = "".join(traceback.format_exception(error)).replace("\n", "")
    steering = [one for one in text if unicodedata.category(one) in ("Cc", "Cs", "Zl", "Zp") or one in "\u202e\u2066"]
    assert not steering, ascii(text)
    assert len(str(error)) < 1500
