"""Chromium without a window, driven by its DevTools protocol over a plain socket: no library is needed for it."""

from __future__ import annotations

import base64
import itertools
import json
import os
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

NAMES = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    *(
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-background-networking",
        "--disable-sync",
        "--no-first-run",
    ),
    *("--disable-component-update", "--disable-default-apps", "--disable-dev-shm-usage", "--remote-debugging-port=0"),
    "--proxy-server=127.0.0.1:9",  # whoever asks for anything outside gets no answer
)
PATIENCE = 600.0  # seconds for any one answer, on a busy machine


def installed() -> str | None:
    """The path of a Chromium, if there is one."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


class Browser:
    """One page of a Chromium of its own; what it logs, throws and asks for is kept."""

    def __init__(self, width: int = 1200, height: int = 900) -> None:
        self.folder = tempfile.mkdtemp(prefix="chromium-")
        command = [
            str(installed()),
            *FLAGS,
            f"--user-data-dir={self.folder}",
            f"--window-size={width},{height}",
            "about:blank",
        ]
        self.process = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
        )
        self.errors: list[str] = []
        self.requests: list[str] = []
        self._numbers = itertools.count(1)
        self._socket = _connect(self._address())
        self._rest = b""
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.send(f"{domain}.enable")
        self.size(width, height)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _address(self) -> str:
        """The socket of the first page, as soon as Chromium says where it listens."""
        note = Path(self.folder) / "DevToolsActivePort"
        until(lambda: note.exists() and len(note.read_text().split()) > 1, "Chromium to start")
        port = note.read_text().split()[0]
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        pages: list[dict[str, str]] = []

        def found() -> bool:
            with opener.open(f"http://127.0.0.1:{port}/json/list", timeout=PATIENCE) as answer:
                pages[:] = [page for page in json.load(answer) if page["type"] == "page"]
            return bool(pages)

        until(found, "a page")
        return pages[0]["webSocketDebuggerUrl"]

    def send(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Call a method of the protocol, and give its result."""
        number = next(self._numbers)
        _write(self._socket, json.dumps({"id": number, "method": method, "params": parameters}))
        while True:
            message = self._receive()
            if message.get("id") == number:
                assert "error" not in message, message
                return dict(message["result"])

    def _receive(self) -> dict[str, Any]:
        text, self._rest = _read(self._socket, self._rest)
        message: dict[str, Any] = json.loads(text)
        given = message.get("params", {})
        match message.get("method"):
            case "Runtime.exceptionThrown":
                self.errors.append(json.dumps(given["exceptionDetails"])[:500])
            case "Runtime.consoleAPICalled" if given["type"] in ("error", "warning", "assert"):
                self.errors.append(json.dumps(given["args"])[:500])
            case "Log.entryAdded" if given["entry"]["level"] in ("error", "warning"):
                self.errors.append(json.dumps(given["entry"])[:500])
            case "Network.requestWillBeSent":
                self.requests.append(given["request"]["url"])
        return message

    def size(self, width: int, height: int) -> None:
        """Make the window so many pixels large."""
        self.send("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def scheme(self, name: str) -> None:
        """Prefer `light` or `dark`."""
        self.send("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": name}])

    def open(self, path: Path) -> float:
        """Open a file, and give the seconds until its script is done, counted by the page itself."""
        self.send("Page.navigate", url=path.absolute().as_uri())
        until(lambda: self.run("document.documentElement?.dataset?.ready === '1'"), "the page")
        return float(self.run("performance.now() / 1000"))

    def run(self, script: str) -> Any:
        """The value of an expression in the page."""
        found = self.send("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def mouse(self, x: float, y: float, *, click: bool = False) -> None:
        """Move to a place, and click there."""
        self.send("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
        for kind in ("mousePressed", "mouseReleased") if click else ():
            self.send("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def key(self, name: str) -> None:
        """Press a key."""
        for kind in ("keyDown", "keyUp"):
            self.send("Input.dispatchKeyEvent", type=kind, key=name, code=name)

    def picture(self, path: Path, selector: str | None = None) -> None:
        """A screenshot of the page, or of an element."""
        options: dict[str, Any] = {"format": "png", "captureBeyondViewport": True}
        if selector is not None:
            box = "(r => ({x: r.x + scrollX, y: r.y + scrollY, width: r.width, height: r.height, scale: 1}))"
            options["clip"] = self.run(f"{box}(document.querySelector({json.dumps(selector)}).getBoundingClientRect())")
        path.write_bytes(base64.b64decode(self.send("Page.captureScreenshot", **options)["data"]))


def until(holds: Callable[[], Any], what: str) -> None:
    """Wait for something."""
    end = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < end, f"waited in vain for {what}"
        time.sleep(0.05)


def _connect(address: str) -> socket.socket:
    host, _, path = address.removeprefix("ws://").partition("/")
    name, _, port = host.partition(":")
    made = socket.create_connection((name, int(port)), timeout=PATIENCE)
    key = base64.b64encode(os.urandom(16)).decode()
    made.sendall(
        f"GET /{path} HTTP/1.1\r\nHost: {host}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n".encode()
    )
    answer = b""
    while not answer.endswith(b"\r\n\r\n"):
        answer += made.recv(1)
    assert b" 101 " in answer, answer
    return made


def _write(to: socket.socket, text: str) -> None:
    """One masked frame of text, as a client has to send it."""
    content, mask = text.encode(), os.urandom(4)
    size = len(content)
    head = bytes([0x81])
    head += (
        bytes([0x80 | size])
        if size < 126
        else bytes([0xFE]) + struct.pack(">H", size)
        if size < 65536
        else bytes([0xFF]) + struct.pack(">Q", size)
    )
    to.sendall(head + mask + bytes(byte ^ mask[i % 4] for i, byte in enumerate(content)))


def _read(of: socket.socket, rest: bytes) -> tuple[str, bytes]:
    """The next message, of one frame or several, and what came after it."""

    def take(count: int) -> bytes:
        nonlocal rest
        parts, have = [rest], len(rest)
        while have < count:
            parts.append(of.recv(65536))
            assert parts[-1], "Chromium has hung up"
            have += len(parts[-1])
        whole = b"".join(parts)
        rest = whole[count:]
        return whole[:count]

    message, last = b"", False
    while not last:
        first, second = take(2)
        size = second & 127
        size = (
            struct.unpack(">H", take(2))[0] if size == 126 else struct.unpack(">Q", take(8))[0] if size == 127 else size
        )
        content = take(size)
        if first & 15 in (0, 1):
            message, last = message + content, bool(first & 128)
    return message.decode(), rest
