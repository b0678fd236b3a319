"""What can go wrong between a client and a server, and what to do about it."""

OK, BAD_REQUEST, NOT_FOUND, TOO_MANY, UNAVAILABLE, TIMED_OUT = 200, 400, 404, 429, 503, 504
RETRIED = (None, TOO_MANY, UNAVAILABLE, TIMED_OUT)
SHOWN = 200  # Characters of an answer that is not understood.

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
    """A server did not answer, or answered with an error.

    Attributes:
        status: The HTTP status code, or the one that a gRPC code stands for; `None` if there was no answer.
        can_retry: Whether the same request may succeed later.
    """

    def __init__(self, message: str, status: int | None = None, can_retry: bool | None = None):
        super().__init__(message)
        self.status = status
        self.can_retry = status in RETRIED if can_retry is None else can_retry


def refusal(address: str, status: int, message: str) -> ServingError:
    """Makes the error of a server that answered with one."""
    hints = [hint for text, hint in HELP_BY_TEXT.items() if text in message]
    hint = hints[0] if hints else HELP.get(status, "")
    return ServingError(f"{address} answered with {status}: {message.strip()}{'. ' + hint if hint else ''}", status)


def misdirection(address: str, text: str) -> ServingError:
    """Makes the error of what answers, but not as TensorFlow Serving does: a web server, or a page to log in."""
    message = f"{address} did not answer as TensorFlow Serving does, but with {' '.join(text.split())[:SHOWN]!r}"
    return ServingError(f"{message}. Is this its REST port, 8501 by default, and does a proxy before it want `headers`?", OK)


def silence(address: str, reason: object) -> ServingError:
    """Makes the error of a server that can't be reached."""
    return ServingError(f"No answer from {address} ({reason}). {HELP[None]}")


def too_slow(address: str, timeout: float) -> ServingError:
    """Makes the error of a server that was waited for long enough; asking again would only give it more to do."""
    message = f"{address} took more than {timeout:g} s. Send fewer texts at once (`batch_size`), or raise `timeout`"
    return ServingError(message, TIMED_OUT, can_retry=False)
