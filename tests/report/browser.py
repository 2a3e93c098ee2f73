"""A page in a real Chromium: a script of the test is added to it, does what a reader does, and its findings are read from the page."""

from __future__ import annotations

import html
import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome")
OPTIONS = ("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking")
HELP = """
const at = (e, share, up = 0.5) => {
  const r = e.getBoundingClientRect();
  return { clientX: r.left + share * r.width, clientY: r.top + up * r.height, bubbles: true, button: 0 };
};
const pointer = (e, kind, share, up) => e.dispatchEvent(new PointerEvent(kind, at(e, share, up)));
const press = (e, key, more = {}) => e.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true, ...more }));
const drag = (e, from, to) => { pointer(e, "pointerdown", from); pointer(e, "pointermove", to); pointer(e, "pointerup", to); };
const all = (what, within = document) => [...within.querySelectorAll(what)];
const values = (e) => Object.fromEntries(all(".readout em", e).map((v) => [v.dataset.series, +v.dataset.value]));
const place = (e) => +e.querySelector(".readout b").dataset.value;
"""
FRAME = """
let found;
try { found = { good: (() => { SCRIPT })() }; } catch (e) { found = { error: String(e.stack) }; }
const out = document.createElement("pre");
out.id = "found"; out.textContent = JSON.stringify(found);
document.body.append(out);
"""


def drive(page: str, script: str, folder: Path, width: int = 1280) -> Any:
    """What the body of a function `script` returns in the page, at a window of `width` px; skipped where there is no browser."""
    browser = next(filter(None, map(shutil.which, (os.environ.get("CHROMIUM", ""), *NAMES))), None)
    if browser is None:
        pytest.skip("there is no Chromium here")
    added = f"<script>{HELP}{FRAME.replace('SCRIPT', script)}</script>"
    file = folder / "page.html"
    file.write_text(page.replace("</body>", f"{added}</body>"), encoding="utf-8")
    command = [browser, *OPTIONS, f"--user-data-dir={folder / 'profile'}", f"--window-size={width},1000"]
    text = subprocess.run(
        [*command, "--dump-dom", file.as_uri()], capture_output=True, text=True, check=True, timeout=120
    ).stdout
    match = re.search(r'<pre id="found">(.*?)</pre>', text, re.DOTALL)
    assert match, text[-2000:]
    found = json.loads(html.unescape(match[1]))
    assert "error" not in found, found["error"]
    return found["good"]
