"""``python -m benchmarks.live``: how long a sample takes to the page at 100 Hz, pictures a second, memory, and what a slow reader costs.

The crane is observed for a minute in real time, shown in a real Chromium, while another reader opens the stream and never reads from it.
"""

from __future__ import annotations

import os

from veridyn.live.tracker import Sample

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import socket
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from tests.live.chromium import Chromium

from veridyn.live.opening import SHOWS
from veridyn.live.server import LiveServer
from veridyn.live.session import Pace, Replay, Session
from veridyn.progress import silent

RATE, SECONDS = 100.0, 60.0


def at_rate(log: Sequence[Sample], rate: float, seconds: float) -> list[Sample]:
    """Readings of a log at another rate, there and back again until the time is over, so that nothing jumps."""
    t = np.array([s.t - log[0].t for s in log])
    stamps = np.arange(round(seconds * rate)) / rate
    folded = np.abs((stamps + t[-1]) % (2.0 * t[-1]) - t[-1])
    columns = {n: np.interp(folded, t, [s.values[n] for s in log]) for n in log[0].values}
    return [Sample(float(at), {n: float(v[k]) for n, v in columns.items()}, 0.0) for k, at in enumerate(stamps)]


def resident() -> float:
    """Memory of this process, MB."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def spread(values: Sequence[float]) -> str:
    """Median, 95th and 99th of a hundred, and largest."""
    v = np.array(values)
    return ", ".join(f"{w} {x:.0f} ms" for w, x in zip(("median", "95 %", "99 %"), np.quantile(v, [0.5, 0.95, 0.99])))


def main(seconds: float = SECONDS) -> None:
    """Run and print."""
    tracker, log, _ = SHOWS["crane"](silent)
    samples, pace = at_rate(log, RATE, seconds), Pace(1.0, paused=True)
    session = Session(tracker, Replay("the crane at 100 Hz", samples, pace), pace=pace)
    server = LiveServer(session, 0)
    worker = threading.Thread(target=session.run)
    worker.start()
    with tempfile.TemporaryDirectory() as folder:
        browser = Chromium(Path(folder))
        try:
            browser.open(server.address)
            browser.until("live.layout !== null")
            stuck = socket.create_connection(("127.0.0.1", server.port))
            stuck.sendall(b"GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n")
            before, began = resident(), time.perf_counter()
            pace.paused = False
            received: list[float] = []
            drawn: list[float] = []
            while worker.is_alive():
                time.sleep(0.5)
                new, seen = browser.evaluate("[live.delays.splice(0), live.drawn.splice(0)]")
                received += new
                drawn += seen
            took = time.perf_counter() - began
            browser.until(f"live.last === {len(samples)}")
            new, seen = browser.evaluate("[live.delays.splice(0), live.drawn.splice(0)]")
            frames, missed, heap = browser.evaluate("[live.frames, live.missed, performance.memory.usedJSHeapSize]")
            stuck.close()
        finally:
            browser.close()
    server.stop()
    print(f"{len(samples)} samples at {RATE:g} Hz in {took:.1f} s ({seconds:g} s of the machine)")
    print(f"sample to page: {spread(received + new)}, largest {max(received + new):.0f} ms")
    print(f"sample to picture: {spread(drawn + seen)}")
    print(f"pictures a second: {frames / took:.0f}; rows lost: {missed}")
    print(f"memory: {before:.0f} MB before, {resident():.0f} MB after; of the page {heap / 2**20:.1f} MB")
    print("one reader never read: the observer was not held up" if took < seconds + 2.0 else "the observer was held up")


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else SECONDS)
