"""A server that answers as it is told, byte by byte, and the faults of a thousand servers."""

import functools
import gzip
import itertools
import json
import random
import socket
import struct
import threading

PAUSE, HANG, RESET, CLOSE = "pause", "hang", "reset", "close"  # What an answer may have between its bytes.
HUGE, DEEP = "<huge>", "<deep>"
MARKS = {HUGE: b"9" * 100_000, DEEP: b"[" * 100_000 + b"]" * 100_000}
JUNK = [
    None,
    True,
    -1,
    0,
    2**70,
    1.5,
    1e308,
    float("nan"),
    float("inf"),
    "",
    "5",
    "NaN",
    [],
    {},
    [[]],
    [None],
    {"b64": "?"},
    HUGE,
]
JUNK += [DEEP, "x" * 5000, "\ud800", "\x1b[31m\x07\r\n", "\u202eabc\u2066", {"": {}}, [1, [2, [3]]]]


class HostileServer:
    """Gives each request to `answer(method, path, body)`, and sends the pieces that it yields.

    `context` is for TLS; `greeting` is sent to each client before it has said a word.
    """

    def __init__(self, answer, context=None, greeting=b""):
        self.answer, self.context, self.greeting = answer, context, greeting
        self.requests, self.ending = [], threading.Event()
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http{'s' if context else ''}://127.0.0.1:{self.socket.getsockname()[1]}"
        threading.Thread(target=self.accept, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.ending.set()
        self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()

    def accept(self):
        while not self.ending.is_set():
            try:
                connection = self.socket.accept()[0]
            except OSError:
                return
            threading.Thread(target=self.serve, args=[connection], daemon=True).start()

    def serve(self, connection):
        try:
            self.send(connection, self.greeting)
            if self.context is not None:
                connection = self.context.wrap_socket(connection, server_side=True)
            with connection, connection.makefile("rb") as stream:
                while line := stream.readline():
                    fields = dict(iter(lambda: stream.readline().strip().lower().partition(b": ")[::2], (b"", b"")))
                    body = stream.read(int(fields.get(b"content-length", 0)))
                    method, path = line.decode().split()[:2]
                    self.requests.append(path)
                    for piece in self.answer(method, path, body):
                        self.send(connection, piece)
        except (OSError, ValueError):
            connection.close()  # The client had enough, or is to think that the server had.

    def send(self, connection, piece):
        if self.ending.is_set():
            raise ConnectionAbortedError
        if piece == PAUSE:
            self.ending.wait(0.01)
        elif piece == HANG:
            connection.recv(1)
        elif piece in (RESET, CLOSE):
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", piece == RESET, 0))
            raise ConnectionAbortedError
        else:
            connection.sendall(piece)


def http(body=b"", status="200 OK", length=None, *fields):
    """An answer of HTTP/1.1. `length` is what it says that its body has."""
    head = [f"HTTP/1.1 {status}", *fields]
    if length is not False:
        head.append(f"Content-Length: {len(body) if length is None else length}")
    return "\r\n".join([*head, "", ""]).encode("utf-8", "surrogatepass") + body


def chunked(chunks, end=b"0\r\n\r\n"):
    """The body of an answer in chunks, each with the size that it says."""
    chunks = b"".join(size.encode() + b"\r\n" + chunk + b"\r\n" for size, chunk in chunks)
    return http(chunks + end, "200 OK", False, "Transfer-Encoding: chunked")


def each_byte(data):
    return itertools.chain.from_iterable((data[place : place + 1], PAUSE) for place in range(len(data)))


# Right answers, if unusual ones.
HONEST = {
    "plain": lambda body: [http(body)],
    "in chunks": lambda body: [
        chunked((f"{len(body[at : at + 7]):x};x=y", body[at : at + 7]) for at in range(0, len(body), 7))
    ],
    "in pieces": lambda body: [http(body)[:30], PAUSE, http(body)[30:]],
    "until the end": lambda body: [http(body, "200 OK", False), CLOSE],
    "then closed": lambda body: [http(body, "200 OK", None, "Connection: close"), CLOSE],
    "100 first": lambda body: [b"HTTP/1.1 100 Continue\r\n\r\n" + http(body)],
    "blanks": lambda body: [http(b" \n" * 1000 + body)],
}
# Faults of a server, or of what is between.
FAULTS = {
    "silence": lambda body: [HANG],
    "closed at once": lambda body: [RESET],
    "one byte at a time": lambda body: each_byte(http(body * 100)),
    "head at a byte a time": lambda body: each_byte(http(b"", "200 OK", None, *["X: " + "y" * 500] * 90)),
    "endless head": lambda body: itertools.chain([b"HTTP/1.1 200 OK\r\n"], itertools.repeat(b"X: y\r\n")),
    "endless line": lambda body: itertools.chain([b"HTTP/1.1 200 OK\r\nX: "], itertools.repeat(b"y" * 1000)),
    "endless 100": lambda body: itertools.repeat(b"HTTP/1.1 100 Continue\r\nX: y\r\n\r\n" * 100),
    "slow 100": lambda body: itertools.chain.from_iterable(itertools.repeat((b"HTTP/1.1 100 Continue\r\n\r\n", PAUSE))),
    "endless body": lambda body: itertools.chain([http(b"", "200 OK", False)], itertools.repeat(b"[" * 10_000)),
    "endless body of an error": lambda body: itertools.chain([http(b"", "500 X", False)], itertools.repeat(b"x" * 10_000)),
    "endless chunks": lambda body: itertools.chain([chunked([], b"")], itertools.repeat(b"5\r\n12345\r\n")),
    "endless trailer": lambda body: itertools.chain([chunked([], b"0\r\n")], itertools.repeat(b"X: y\r\n")),
    "huge chunk": lambda body: [chunked([("fffffffffffffff", body)]), HANG],
    "larger chunk": lambda body: [chunked([("7fffffff", body)]), RESET],
    "chunk below 0": lambda body: [chunked([("-5", body)])],
    "chunk of -1": lambda body: [chunked([("-1", body)]), RESET],
    "chunk without size": lambda body: [chunked([("", body)])],
    "chunk of words": lambda body: [chunked([("size", body)])],
    "no end of chunks": lambda body: [chunked([(f"{len(body):x}", body)], b""), RESET],
    "length too long": lambda body: [http(body, "200 OK", len(body) + 9), RESET],
    "length too long, waiting": lambda body: [http(body, "200 OK", len(body) + 9), HANG],
    "length too short": lambda body: [http(body, "200 OK", len(body) - 3)],
    "length below 0": lambda body: [http(body, "200 OK", -9), RESET],
    "length of words": lambda body: [http(body, "200 OK", "long"), RESET],
    "huge length": lambda body: [http(body, "200 OK", 10**30), RESET],
    "large length": lambda body: [http(body, "200 OK", 10**12), RESET],
    "length of many digits": lambda body: [http(body, "200 OK", "9" * 9000), RESET],
    "reset in the body": lambda body: [http(body)[:-9], RESET],
    "reset in the head": lambda body: [http(body)[:9], RESET],
    "gzip": lambda body: [http(gzip.compress(b" " * 10**7 + body), "200 OK", None, "Content-Encoding: gzip")],
    "to a file": lambda body: [http(body, "302 Found", None, "Location: file:///etc/passwd")],
    "elsewhere": lambda body: [http(body, "307 Moved", None, "Location: /trap")],
    "web page": lambda body: [http(b"<html>\x1b[2J\x1b]0;owned\x07 log in\xe2\x80\xae</html>")],
    "error page": lambda body: [http(b"<html>\x1b[2J\xff\xfe" + b"!" * 9000, "502 Bad \x1b[31m")],
    "error": lambda body: [http(json.dumps({"error": "\x1b[2J\u202e\ud800" * 999}).encode(), "400 Bad")],
    "deep error": lambda body: [http(b'{"error": ' + MARKS[DEEP] + b"}", "400 Bad")],
    "error without a text": lambda body: [http(b'{"error": {"error": 5}}', "404 Not Found")],
    "wrong status": lambda body: [http(body, "500 Internal")],
    "no content": lambda body: [http(b"", "204 No Content")],
    "overloaded": lambda body: [http(b"busy", "503 Busy")],
    "status out of range": lambda body: [http(body, "99999 OK")],
    "garbage": lambda body: [b"\x1b[31m\0\xff garbage\r\n\r\n", RESET],
    "HTTP/2": lambda body: [b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", RESET],
    "another protocol": lambda body: [b"HTTP/9.\x1b[31m 200 OK\r\n\r\n" + body, RESET],
    "long first line": lambda body: [b"HTTP/1.1 200 " + b"x" * 99_999, RESET],
    "empty": lambda body: [http(b"")],
    "nothing": lambda body: [http(b"null")],
    "deep": lambda body: [http(MARKS[DEEP])],
    "deep objects": lambda body: [http(b'{"outputs":' * 50_000)],
    "huge number": lambda body: [http(b'{"outputs": ' + MARKS[HUGE] + b"}")],
    "byte order mark": lambda body: [http(b"\xef\xbb\xbf" + body)],
    "UTF-16": lambda body: [http(body.decode().encode("utf-16"))],
    "twice": lambda body: [http(body + body)],
    "too large": lambda body: [http(b"[" + b"[]," * 10**6 + b"1]")],
}


def places(tree, path=()):
    """The paths of all parts of a JSON document."""
    yield path
    items = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, value in items:
        yield from places(value, (*path, key))


def mutated_tree(chance, body):
    """Changes one to three parts of a JSON document."""
    tree = {"": json.loads(body)}
    for _ in range(chance.choice((1, 1, 1, 2, 3))):
        *path, last = chance.choice([path for path in places(tree) if path])
        owner = functools.reduce(lambda part, key: part[key], path, tree)
        kind = chance.randrange(6)
        if kind == 0 and path:
            del owner[last]
        elif kind == 1:
            owner[last] = chance.choice(([owner[last]], {"a": owner[last]}))
        elif kind == 2 and isinstance(owner, list):
            owner.insert(last, json.loads(json.dumps(owner[last])))
        elif kind == 2 and path:
            owner[chance.choice(("predictions", "outputs", "x", last.upper()))] = owner.pop(last)
        elif kind == 3:
            other = functools.reduce(lambda part, key: part[key], chance.choice(list(places(tree))), tree)
            owner[last] = json.loads(json.dumps(other))
        else:
            owner[last] = chance.choice(JUNK)
    data = json.dumps(tree[""], ensure_ascii=chance.random() < 0.5).encode("utf-8", "surrogatepass")
    for mark, text in MARKS.items():
        data = data.replace(b'"' + mark.encode() + b'"', text)
    return data


def mutated_bytes(chance, data):
    """Changes one to three places of some bytes."""
    for _ in range(chance.choice((1, 1, 1, 2, 3))):
        start = chance.randrange(len(data) + 1)
        end = min(len(data), start + chance.choice((0, 1, 1, 5, 50)))
        filling = (b"", bytes([chance.randrange(256)]), b"\xff\xc0\x80", b"\x1b[31m", b"\0", data[start:end] * 3)
        data = data[:start] + chance.choice(filling) + data[end:] or b"x"
    return data


def hostile_answer(number, body):
    """The name and the pieces of an answer that stands for a number, made from a right one."""
    chance = random.Random(number)
    kind = chance.random()
    if kind < 0.45:
        return "another document", [http(mutated_tree(chance, body))]
    if kind < 0.55:
        return "damaged document", [http(mutated_bytes(chance, body))]
    if kind < 0.65:
        return "damaged answer", [mutated_bytes(chance, http(body)), RESET if chance.random() < 0.7 else HANG]
    name = chance.choice(list(FAULTS))
    return name, FAULTS[name](body)
