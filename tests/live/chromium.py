"""A real Chromium that stays open, over its debugging protocol: expressions are evaluated in a page, promises waited for."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome")
OPTIONS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--remote-debugging-port=0",
    "--remote-allow-origins=*",
)
LONGEST_S = 120.0  # that anything is waited for: then the test fails, and says what it waited for
# True when a condition holds, looked at every few milliseconds; false when the time is over.
UNTIL = """new Promise((done) => {{
  const end = performance.now() + {longest};
  const look = () => ({condition}) ? done(true) : performance.now() > end ? done(false) : setTimeout(look, 5);
  look();
}})"""


class Chromium:
    """A browser with one page; closed by :meth:`close`."""

    def __init__(self, folder: Path, width: int = 1280, height: int = 1000) -> None:
        browser = next(filter(None, map(shutil.which, (os.environ.get("CHROMIUM", ""), *NAMES))), None)
        if browser is None:
            pytest.skip("there is no Chromium here")
        pytest.importorskip("websockets", reason="websockets (the extra 'live') talks to the browser")
        from websockets.sync.client import connect

        command = [browser, *OPTIONS, f"--user-data-dir={folder / 'profile'}", f"--window-size={width},{height}"]
        self._process = subprocess.Popen([*command, "about:blank"], stderr=subprocess.DEVNULL)
        self._socket = connect(self._address(folder / "profile" / "DevToolsActivePort"), max_size=None)
        self._number = 0
        target = self._call("Target.getTargets")["targetInfos"]
        page = next(t["targetId"] for t in target if t["type"] == "page")
        self._session = self._call("Target.attachToTarget", targetId=page, flatten=True)["sessionId"]

    def _address(self, file: Path) -> str:
        """Where the browser listens, which it writes into a file when it does."""
        end = time.monotonic() + LONGEST_S
        while time.monotonic() < end:
            said = file.read_text().split() if file.is_file() else []
            if len(said) == 2:
                return f"ws://127.0.0.1:{said[0]}{said[1]}"
            assert self._process.poll() is None, f"the browser ended with {self._process.returncode}"
            time.sleep(0.02)
        raise TimeoutError(f"the browser did not say in {LONGEST_S:g} s where it listens")

    def open(self, address: str) -> None:
        self._call("Page.enable", self._session)
        self._call("Page.navigate", self._session, url=address)
        self.until(f"location.href === {json.dumps(address)} && document.readyState === 'complete'")

    def evaluate(self, expression: str) -> Any:
        """The value of an expression in the page; promises are waited for."""
        found = self._call(
            "Runtime.evaluate", self._session, expression=expression, awaitPromise=True, returnByValue=True
        )
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def until(self, condition: str) -> None:
        """Wait until an expression is true in the page."""
        held = self.evaluate(UNTIL.format(condition=condition, longest=1000.0 * LONGEST_S))
        assert held, f"not true in the page within {LONGEST_S:g} s: {condition}"

    def dark(self) -> None:
        features = [{"name": "prefers-color-scheme", "value": "dark"}]
        self._call("Emulation.setEmulatedMedia", self._session, features=features)

    def resize(self, width: int, height: int) -> None:
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self._call("Emulation.setDeviceMetricsOverride", self._session, **size)

    def picture(self, file: Path, whole: bool = True) -> None:
        import base64

        shot = self._call("Page.captureScreenshot", self._session, captureBeyondViewport=whole)
        file.write_bytes(base64.b64decode(shot["data"]))

    def close(self) -> None:
        self._socket.close()
        self._process.terminate()
        self._process.wait(LONGEST_S)

    def _call(self, method: str, session: str = "", **parameters: Any) -> Any:
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        self._socket.send(json.dumps(message | ({"sessionId": session} if session else {})))
        while True:
            answer = json.loads(self._socket.recv(2.0 * LONGEST_S))
            if answer.get("id") == self._number:
                assert "error" not in answer, answer["error"]
                return answer["result"]
