"""A headless Chromium for tests, driven over the DevTools protocol through a pair of pipes.

with Browser(width=390, height=844) as page:
    page.open("playground.html")
    page.type("#text", "a house")
    page.key("Control+Enter")
    page.wait_for("document.querySelector('#translation').textContent")
    page.screenshot("phone.png")
"""

import base64
import fcntl
import json
import os
import select
import shlex
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

from tests.conftest import PROVING

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
CHROMIUM = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
OPTIONS = (
    "--headless=new --no-sandbox --disable-gpu --disable-dev-shm-usage --hide-scrollbars --no-first-run --disable-extensions "
    "--disable-background-networking --disable-component-update --mute-audio --lang=en-US --remote-debugging-pipe"
)
TIMEOUT = 60  # Seconds that a command of the protocol may take.
KEY_CODES = {
    "Backspace": 8, "Tab": 9, "Enter": 13, "Escape": 27, " ": 32, "PageUp": 33, "PageDown": 34, "End": 35, "Home": 36,
    "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40, "Delete": 46,
}  # fmt: skip
KEY_TEXTS = {"Enter": "\r", "Tab": "\t", " ": " "}
MODIFIERS = {"Alt": 1, "Control": 2, "Meta": 4, "Shift": 8}

needs_chromium = pytest.mark.skipif(
    not (PROVING and CHROMIUM), reason="runs in `make prove` where Chromium is installed (apt install chromium)"
)


def pipe() -> tuple[int, int]:
    """Makes a pipe whose ends have numbers above those that Chromium uses."""
    ends = os.pipe()
    moved = tuple(fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in ends)
    for end in ends:
        os.close(end)
    return moved


class Browser:
    """A Chromium with one page.

    Args:
        width, height: Of the page, in CSS pixels.
        scale: Device pixels a CSS pixel.
        dark: Whether the system prefers dark colours.
    """

    def __init__(self, width: int = 1280, height: int = 900, scale: float = 1, dark: bool = False):
        self.size = (width, height, scale)
        self.dark = dark
        self.events = []
        self._last_id = 0
        self._waiting = b""

    def __enter__(self):
        self._profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        commands, self._commands = pipe()
        self._answers, answers = pipe()
        pipes = f"3</proc/self/fd/{commands} 4>/proc/self/fd/{answers}"  # Chromium reads from 3 and writes to 4.
        command = f"exec {shlex.quote(CHROMIUM)} {OPTIONS} --user-data-dir={self._profile.name} {pipes}"
        self._process = subprocess.Popen(
            ["sh", "-c", command],
            pass_fds=(commands, answers),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(commands)
        os.close(answers)
        self._attach()
        return self

    def __exit__(self, *error):
        os.close(self._commands)  # Chromium ends when its pipe does.
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._answers)
        self._profile.cleanup()

    def _attach(self):
        self._session = None
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.send(f"{domain}.enable")
        self.resize(*self.size)
        self.prefer_dark(self.dark)

    def send(self, method: str, **parameters) -> dict:
        """Sends a command of the DevTools protocol and returns its result."""
        self._last_id += 1
        message = {"id": self._last_id, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._commands, json.dumps(message).encode() + b"\0")
        answer = self._receive(lambda message: message.get("id") == self._last_id, method)
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']['message']}")
        return answer["result"]

    def _receive(self, is_wanted, what: str) -> dict:
        """Reads messages up to a wanted one; the others are kept as events."""
        deadline = time.monotonic() + TIMEOUT
        while True:
            while b"\0" in self._waiting:
                text, self._waiting = self._waiting.split(b"\0", 1)
                message = json.loads(text)
                if "method" in message:
                    self.events.append(message)
                if is_wanted(message):
                    return message
            if not select.select([self._answers], [], [], max(0, deadline - time.monotonic()))[0]:
                raise TimeoutError(f"Chromium did not answer {what} within {TIMEOUT} s")
            data = os.read(self._answers, 1 << 16)
            if not data:
                raise RuntimeError(f"Chromium ended while it was to answer {what}")
            self._waiting += data

    def open(self, address: str | os.PathLike):
        """Opens a file or a URL and waits until it is loaded."""
        url = str(address) if "://" in str(address) else Path(address).resolve().as_uri()
        failure = self.send("Page.navigate", url=url).get("errorText")
        if failure:
            raise RuntimeError(f"Chromium can't open {url}: {failure}")
        self.wait_for(f"location.href.startsWith({json.dumps(url)}) && document.readyState === 'complete'")

    def evaluate(self, script: str):
        """Returns the value of a JavaScript expression; a promise is waited for."""
        answer = self.send("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True, userGesture=True)
        if "exceptionDetails" in answer:
            details = answer["exceptionDetails"]
            raise RuntimeError(f"{script}: {details.get('exception', {}).get('description', details['text'])}")
        return answer["result"].get("value")

    def wait_for(self, script: str, timeout: float = 30):
        """Evaluates an expression again and again until JavaScript takes it for true, and returns its value."""
        test = f"(async () => {{ const value = await ({script}); return [Boolean(value), value]; }})()"
        deadline = time.monotonic() + timeout
        while True:
            late = time.monotonic() > deadline
            is_true, value = self.evaluate(test)
            if is_true:
                return value
            if late:
                raise TimeoutError(f"not true within {timeout} s: {script}")
            self.evaluate("new Promise(done => setTimeout(done, 16))")

    def hover(self, selector: str):
        """Moves the mouse over the middle of an element."""
        self._mouse("mouseMoved", *self._middle(selector))

    def click(self, selector: str):
        """Clicks in the middle of an element."""
        place = self._middle(selector)
        self._mouse("mouseMoved", *place)
        self._mouse("mousePressed", *place, button="left", clickCount=1)
        self._mouse("mouseReleased", *place, button="left", clickCount=1)

    def type(self, selector: str, text: str):
        """Focuses an element and inserts text at its cursor."""
        self.evaluate(f"document.querySelector({json.dumps(selector)}).focus()")
        self.send("Input.insertText", text=text)

    def key(self, name: str):
        """Presses a key, such as "ArrowDown", "a" or "Control+Enter"."""
        *modifiers, key = name.split("+")
        event = {"key": key, "code": key if key in KEY_CODES else f"Key{key.upper()}"}
        event["windowsVirtualKeyCode"] = KEY_CODES.get(key, ord(key[-1].upper()))
        event["modifiers"] = sum(MODIFIERS[modifier] for modifier in modifiers)
        text = KEY_TEXTS.get(key, key if len(key) == 1 else "")
        if text and event["modifiers"] in (0, MODIFIERS["Shift"]):
            event["text"] = text
        self.send("Input.dispatchKeyEvent", type="keyDown" if "text" in event else "rawKeyDown", **event)
        self.send("Input.dispatchKeyEvent", type="keyUp", **{**event, "text": ""})

    def resize(self, width: int, height: int, scale: float = 1):
        """Gives the page another size; narrow ones behave like a phone."""
        self.send("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=scale, mobile=width < 600)

    def prefer_dark(self, dark: bool = True):
        """Says whether the system prefers dark colours."""
        value = "dark" if dark else "light"
        self.send("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": value}])

    def screenshot(self, path: str | os.PathLike, full_page: bool = False) -> Path:
        """Writes what is visible, or the whole page, as PNG."""
        data = self.send("Page.captureScreenshot", format="png", captureBeyondViewport=full_page)["data"]
        Path(path).write_bytes(base64.b64decode(data))
        return Path(path)

    @property
    def errors(self) -> list[str]:
        """Uncaught exceptions and errors that the page wrote to its console."""
        self.evaluate("0")  # Reads the events that are waiting.
        found = []
        for event in self.events:
            parameters = event["params"]
            if event["method"] == "Runtime.exceptionThrown":
                details = parameters["exceptionDetails"]
                found.append(details.get("exception", {}).get("description", details["text"]))
            elif event["method"] == "Runtime.consoleAPICalled" and parameters["type"] == "error":
                found.append(" ".join(str(argument.get("value", argument)) for argument in parameters["args"]))
            elif event["method"] == "Log.entryAdded" and parameters["entry"]["level"] == "error":
                found.append(f"{parameters['entry']['text']} {parameters['entry'].get('url', '')}")
        return found

    @property
    def requests(self) -> list[str]:
        """The addresses that the page asked for."""
        self.evaluate("0")
        return [event["params"]["request"]["url"] for event in self.events if event["method"] == "Network.requestWillBeSent"]

    def _middle(self, selector: str) -> tuple[float, float]:
        """Scrolls an element into view and returns the middle of what is visible."""
        script = f"""(() => {{
            const element = document.querySelector({json.dumps(selector)});
            element.scrollIntoView({{block: "center", inline: "center", behavior: "instant"}});
            const box = element.getBoundingClientRect();
            return [box.left + box.width / 2, box.top + box.height / 2];
        }})()"""
        return tuple(self.evaluate(script))

    def _mouse(self, kind: str, x: float, y: float, **options):
        self.send("Input.dispatchMouseEvent", type=kind, x=x, y=y, **options)
