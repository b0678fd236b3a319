"""What can go wrong between a client and a server, and what to do about it."""

import re

OK, BAD_REQUEST, NOT_FOUND, TOO_MANY, UNAVAILABLE, TIMED_OUT = 200, 400, 404, 429, 503, 504
RETRIED = (None, TOO_MANY, UNAVAILABLE, TIMED_OUT)
SHOWN = 400  # Characters of what a server says that an error repeats.
# Control characters, what turns the direction of text, line ends of all kinds, and halves of characters.
STEERING = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")

HELP = {
    None: "Is the server running, and is this its port? By default it is 8501 for http:// and 8500 for grpc://",
    TOO_MANY: "The server has more to do than it can; try again later, or raise its max_enqueued_batches",
    UNAVAILABLE: "The server has more to do than it can, or is starting; try again later, or add replicas",
    TIMED_OUT: "The server took too long; send fewer or shorter texts at once, or raise its --rest_api_timeout_in_ms",
}
HELP_BY_TEXT = {
    "larger than maximum input batch size": "Give the client a smaller `batch_size`",
    "not found in signature def": "The export lacks this signature; `Client.metadata()` lists those it has",
    "Unrecognized servable version label": "No version has this label; see version_labels in the server's models.config",
}


class ServingError(RuntimeError):
    """A server did not answer, or answered with an error or with something else than a translation.

    The message has what the server said, shortened, and with control characters escaped.

    Attributes:
        status: The HTTP status code, or the one that a gRPC code stands for; `None` if there was no answer.
        can_retry: Whether the same request may succeed later.
    """

    def __init__(self, message: str, status: int | None = None, can_retry: bool | None = None):
        super().__init__(printable(message))
        self.status = status
        self.can_retry = status in RETRIED if can_retry is None else can_retry


def printable(text: str) -> str:
    """Escapes what would steer a terminal or reorder the text on it."""
    return STEERING.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def shown(said: object) -> str:
    """Returns what a server or an exception says, on one line and not too long."""
    return printable(" ".join(str(said)[: 9 * SHOWN].split()))[:SHOWN]


def refusal(address: str, status: int, message: str) -> ServingError:
    """Makes the error of a server that answered with one."""
    hints = [hint for text, hint in HELP_BY_TEXT.items() if text in message]
    hint = hints[0] if hints else HELP.get(status, "")
    return ServingError(f"{address} answered with {status}: {shown(message)}{'. ' + hint if hint else ''}", status)


def misdirection(address: str, text: str, reason: Exception) -> ServingError:
    """Makes the error of what answers, but not as a served translator does: another model, a web server, a page to log in."""
    message = f"{address} did not answer as TensorFlow Serving does, but with '{shown(text)}' ({shown(reason)})"
    hint = "Is this its REST port, 8501 by default (gRPC: 8500), and does a proxy before it want `headers`?"
    return ServingError(f"{message}. {hint}", OK)


def silence(address: str, reason: object) -> ServingError:
    """Makes the error of a server that can't be reached."""
    return ServingError(f"No answer from {address} ({shown(reason) or type(reason).__name__}). {HELP[None]}")


def too_long(address: str, limit: int) -> ServingError:
    """Makes the error of a server that sends more than a client wants to hold."""
    message = f"{address} answered with more than {limit:,} bytes. Send fewer texts at once (`batch_size`), or raise"
    return ServingError(f"{message} `max_answer_bytes`", OK)


def too_slow(address: str, seconds: float) -> ServingError:
    """Makes the error of a server that was waited for long enough; asking again would only give it more to do."""
    message = f"{address} took more than {round(seconds, 2):g} s. Send fewer texts at once (`batch_size`), or raise `timeout`"
    return ServingError(message, TIMED_OUT, can_retry=False)
