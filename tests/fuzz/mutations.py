"""Damage to files, at the level of bytes, of structure and of values; every function takes a generator and changes one thing.

Bytes know nothing of a format. Structure moves, drops and doubles lines, tokens and keys. Values are numbers and words that a format allows
and a reader may not expect.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable
from typing import Any

import numpy as np

Mutation = Callable[[bytes, np.random.Generator], bytes]
ODD_TEXT = (
    "nan", "inf", "-inf", "1e999", "1e160", "-1", "0", "1e-320", "", "null", "true", "[]", "{}", "~", "''", "0x10", "1_000", "09:30",
    "a" * 3000, "é☃\U0001f600", "\x00", "!!python/object/apply:os.system ['true']", "&a [*a]", "=1+1", "<x>", "../../etc", "1,5", "1.5.2",
    "9" * 400, "-", "*", "%", "$HOME", "{{ 1 }}", "- -", "? :", "1e5000", "−1", "١٢",
)  # fmt: skip
ODD_JSON: tuple[Any, ...] = (
    None,
    True,
    "",
    "x",
    -1,
    0,
    1e300,
    [],
    {},
    [[]],
    {"a": 1},
    "nan",
    float("nan"),
    10**40,
    [1, "a"],
)
NUMBER = re.compile(rb"-?\d+\.?\d*(?:[eE][-+]?\d+)?")


def some_bytes(data: bytes, rng: np.random.Generator) -> bytes:
    """One to four bytes changed, a slice dropped, doubled or filled, noise inserted, or the end cut off."""
    out = bytearray(data)
    if not out:
        return b"\x00"
    a = int(rng.integers(len(out)))
    b = min(len(out), a + int(rng.integers(1, 64)))
    kind = rng.integers(8)
    if kind < 3:
        for _ in range(int(rng.integers(1, 5))):
            out[int(rng.integers(len(out)))] ^= 1 << int(rng.integers(8))
    elif kind == 3:
        del out[a:b]
    elif kind == 4:
        out[a:a] = out[a:b]
    elif kind == 5:
        out[a:b] = bytes([int(rng.choice([0, 255, 32, 10]))]) * (b - a)
    elif kind == 6:
        out[a:a] = rng.integers(0, 256, int(rng.integers(1, 40)), dtype=np.uint8).tobytes()
    else:
        del out[a:]
    return bytes(out)


def some_lines(data: bytes, rng: np.random.Generator) -> bytes:
    """A line dropped, doubled, moved or indented otherwise."""
    lines = data.split(b"\n")
    a, b = (int(rng.integers(len(lines))) for _ in range(2))
    kind = rng.integers(5)
    if kind == 0:
        del lines[a]
    elif kind == 1:
        lines.insert(a, lines[b])
    elif kind == 2:
        lines[a], lines[b] = lines[b], lines[a]
    elif kind == 3:
        lines[a] = b"  " + lines[a]
    else:
        lines[a] = lines[a].lstrip()
    return b"\n".join(lines)


def some_token(data: bytes, rng: np.random.Generator) -> bytes:
    """A word or number replaced by an odd one, by another of the file, or dropped."""
    found = list(re.finditer(rb"[^\s,;:<>=\"'\[\]{}]+", data))
    if not found:
        return data + b"x"
    token, other = (found[int(rng.integers(len(found)))] for _ in range(2))
    new = [str(rng.choice(ODD_TEXT)).encode(), other.group(), b""][int(rng.integers(3))]
    return data[: token.start()] + new + data[token.end() :]


def some_number(data: bytes, rng: np.random.Generator) -> bytes:
    """A number replaced by one that its format allows: another sign, size or kind."""
    found = list(NUMBER.finditer(data))
    if not found:
        return some_token(data, rng)
    at = found[int(rng.integers(len(found)))]
    new = str(rng.choice(["0", "-1", "1e3", "-1e-3", "1e9", "1e-9", "7", "nan", "1e160", "-0.0", "100000000"])).encode()
    return data[: at.start()] + new + data[at.end() :]


def some_json(data: bytes, rng: np.random.Generator) -> bytes:
    """A value of a JSON document replaced by one of another kind, or a key dropped or renamed."""
    whole = json.loads(data)
    places: list[tuple[Any, Any]] = []

    def walk(node: Any) -> None:
        for key in node if isinstance(node, dict) else range(len(node)) if isinstance(node, list) else ():
            places.append((node, key))
            walk(node[key])

    walk(whole)
    if not places:
        return some_bytes(data, rng)
    node, key = places[int(rng.integers(len(places)))]
    kind = rng.integers(4)
    if kind == 0:
        del node[key]
    elif kind == 1 and isinstance(node, dict):
        node[str(key) + "x"] = node.pop(key)
    else:
        node[key] = ODD_JSON[int(rng.integers(len(ODD_JSON)))]
    return json.dumps(whole).encode()


def some_arrays(data: bytes, rng: np.random.Generator) -> bytes:
    """An array of an NPZ archive with another shape, type, length or values, dropped, or renamed."""
    with np.load(io.BytesIO(data)) as file:
        arrays = {name: file[name] for name in file.files}
    name = str(rng.choice(list(arrays)))
    x = arrays.pop(name)
    kind = rng.integers(9)
    if kind == 1:
        arrays[name + "x"] = x
    elif kind == 2:
        arrays[name] = x.reshape(-1)[: max(0, x.size - 1)]
    elif kind == 3:
        arrays[name] = x[None]
    elif kind == 4:
        arrays[name] = x.astype(str(rng.choice(["complex128", "int8", "bool", "U8", "S3", "float16"])))
    elif kind == 5:
        arrays[name] = np.array(x, dtype=np.float64).byteswap().view(">f8") if x.dtype.kind == "f" else x
    elif kind == 6 and x.size and x.dtype.kind == "f":
        x = x.copy()
        x.reshape(-1)[int(rng.integers(x.size))] = rng.choice([np.nan, np.inf, 1e160, -1e300, 0.0, 1e6])
        arrays[name] = x
    elif kind == 7:
        arrays[name] = np.zeros((0,))
    elif kind == 8:
        arrays[name] = np.array(1.0)
    out = io.BytesIO()
    np.savez(out, allow_pickle=False, **arrays)
    return out.getvalue()


def some_samples(data: bytes, rng: np.random.Generator) -> bytes:
    """A table in CSV, damaged as loggers damage: see `DAMAGES`."""
    head, *rows = data.decode().strip().split("\n")
    table = np.array([[float(x) for x in row.split(",")] for row in rows])
    DAMAGES[int(rng.integers(len(DAMAGES)))](table, rng)
    return "\n".join([head, *(",".join(f"{x:.10g}" for x in row) for row in table)]).encode()


def _span(x: np.ndarray, rng: np.random.Generator, longest: int) -> slice:
    a = int(rng.integers(len(x) - 1))
    return slice(a, min(len(x), a + int(rng.integers(1, longest))))


def _column(x: np.ndarray, rng: np.random.Generator) -> int:
    return int(rng.integers(1, x.shape[1]))


def _spike(x: np.ndarray, rng: np.random.Generator) -> None:
    x[int(rng.integers(len(x))), _column(x, rng)] = rng.choice([1e6, -1e6, 1e160, 100.0])


def _zeros(x: np.ndarray, rng: np.random.Generator) -> None:
    x[_span(x, rng, 20), _column(x, rng)] = 0.0


def _freeze(x: np.ndarray, rng: np.random.Generator) -> None:
    part, k = _span(x, rng, 100), _column(x, rng)
    x[part, k] = x[part.start, k]


def _constant(x: np.ndarray, rng: np.random.Generator) -> None:
    x[:, _column(x, rng)] = rng.choice([0.0, 1.0, -7.5])


def _factor(x: np.ndarray, rng: np.random.Generator) -> None:
    x[:, _column(x, rng)] *= rng.choice([-1.0, 1000.0, 180.0 / np.pi, 1e-3])


def _swap(x: np.ndarray, rng: np.random.Generator) -> None:
    a, b = rng.choice(np.arange(1, x.shape[1]), 2, replace=False)
    x[:, [a, b]] = x[:, [b, a]]


def _clock(x: np.ndarray, rng: np.random.Generator) -> None:
    kind = rng.integers(4)
    if kind == 0:
        x[:, 0] *= rng.choice([1000.0, 1e-3, -1.0])
    elif kind == 1:
        x[:, 0] = x[::-1, 0]
    elif kind == 2:
        x[int(rng.integers(1, len(x))) :, 0] += rng.choice([5.0, -5.0, 3600.0])
    else:
        x[_span(x, rng, 9), 0] = x[0, 0]


def _missing(x: np.ndarray, rng: np.random.Generator) -> None:
    x[_span(x, rng, 30), _column(x, rng)] = rng.choice([np.nan, np.inf])


def _clip(x: np.ndarray, rng: np.random.Generator) -> None:
    k = _column(x, rng)
    top = 0.6 * np.abs(x[:, k]).max()
    x[:, k] = np.clip(x[:, k], -top, top)


DAMAGES = (_spike, _zeros, _freeze, _constant, _factor, _swap, _clock, _missing, _clip)
