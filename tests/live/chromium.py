"""A real Chromium that stays open, over its debugging protocol: expressions are evaluated in a page, promises waited for."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
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
# Resolves when a condition holds, looked at whenever the browser draws: no test waits for a time.
UNTIL = "new Promise((done) => {{ const look = () => ({condition}) ? done(true) : setTimeout(look, 5); look(); }})"


class Chromium:
    """A browser with one page; closed by :meth:`close`."""

    def __init__(self, folder: Path, width: int = 1280, height: int = 1000) -> None:
        browser = next(filter(None, map(shutil.which, (os.environ.get("CHROMIUM", ""), *NAMES))), None)
        if browser is None:
            pytest.skip("there is no Chromium here")
        pytest.importorskip("websockets", reason="websockets (the extra 'live') talks to the browser")
        from websockets.sync.client import connect

        command = [browser, *OPTIONS, f"--user-data-dir={folder / 'profile'}", f"--window-size={width},{height}"]
        self._process = subprocess.Popen([*command, "about:blank"], stderr=subprocess.PIPE, text=True)
        assert self._process.stderr is not None
        address = next(line.split()[-1] for line in self._process.stderr if "DevTools listening on" in line)
        self._socket = connect(address, max_size=None)
        self._number = 0
        target = self._call("Target.getTargets")["targetInfos"]
        page = next(t["targetId"] for t in target if t["type"] == "page")
        self._session = self._call("Target.attachToTarget", targetId=page, flatten=True)["sessionId"]

    def open(self, address: str) -> None:
        self._call("Page.enable", self._session)
        self._call("Page.navigate", self._session, url=address)
        self.until("document.readyState === 'complete'")

    def evaluate(self, expression: str) -> Any:
        """The value of an expression in the page; promises are waited for."""
        found = self._call(
            "Runtime.evaluate", self._session, expression=expression, awaitPromise=True, returnByValue=True
        )
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def until(self, condition: str) -> None:
        """Wait until an expression is true in the page."""
        assert self.evaluate(UNTIL.format(condition=condition))

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
        self._process.wait()
        assert self._process.stderr is not None
        self._process.stderr.close()

    def _call(self, method: str, session: str = "", **parameters: Any) -> Any:
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        self._socket.send(json.dumps(message | ({"sessionId": session} if session else {})))
        while True:
            answer = json.loads(self._socket.recv())
            if answer.get("id") == self._number:
                assert "error" not in answer, answer["error"]
                return answer["result"]
