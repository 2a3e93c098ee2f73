"""Work for processes that share one folder of compiled objects; importable, so that they can be spawned."""

from __future__ import annotations

import os
from pathlib import Path
from threading import Barrier

from veridyn.symbolic import cache, trust

SIZE = 300_000


def content(key: str, who: int) -> cache.Stored:
    """Large enough to be written in several steps, and different for each writer."""
    return cache.Stored(bytes([who]) * SIZE, {"key": key, "who": who})


def whole(found: cache.Stored, key: str) -> bool:
    """One writer's work and nothing of the other's."""
    return found.description["key"] == key and found.code == bytes([found.description["who"]]) * SIZE


def write_together(folder: str, who: int, rounds: int, barrier: Barrier) -> bool:
    """In each round all processes make the same key at once, twice; in the second one file is thrown away while the others read."""
    os.environ[cache.VARIABLE] = folder
    right = True
    for k in range(rounds):
        key = f"round{k}"
        barrier.wait(60)
        right &= whole(cache.load_or_make(key, lambda key=key: content(key, who)), key)
        barrier.wait(60)
        if who == k % 2:
            (Path(folder) / f"{key}.object").unlink()
        for _ in range(3):
            right &= whole(cache.load_or_make(key, lambda key=key: content(key, who)), key)
    return right


def key_together(folder: str, rounds: int, barrier: Barrier) -> list[bytes]:
    """In each round all processes ask at once for the key of a user who has none."""
    found = []
    for k in range(rounds):
        place = Path(folder) / f"user{k}"
        trust.key_folder = lambda place=place: place
        barrier.wait(60)
        found.append(trust.user_key() or b"")
    return found
