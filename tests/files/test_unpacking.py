"""Bounds of unpacking: what is allowed is unpacked whole, and nothing beyond it."""

from __future__ import annotations

import zlib

import pytest

from veridyn.files.unpacking import ALWAYS_ALLOWED_BYTES, MAX_RATIO, allowed_bytes, inflate, too_large


def test_the_bound_is_64_mib_or_a_hundred_times_the_file() -> None:
    assert allowed_bytes(10) == ALWAYS_ALLOWED_BYTES == 64 * 2**20
    assert allowed_bytes(10**9) == MAX_RATIO * 10**9
    assert too_large(ALWAYS_ALLOWED_BYTES, 10) is None
    fault = too_large(1_500_000_000, 800_000)  # what 0.8 MB became
    assert fault is not None and "80000000 bytes" in fault.expected and "1500000000 bytes from 800000" in fault.found


def test_inflate_gives_back_what_was_packed_up_to_the_limit() -> None:
    data = bytes(range(256)) * 20
    packed = zlib.compress(data)
    assert inflate(packed, len(data)) == data == inflate(packed, 10 * len(data))
    assert inflate(zlib.compress(b""), 5) == b""
    assert inflate(zlib.compress(b""), 0) == b""
    for limit in (0, 1, 100, len(data) - 1):
        with pytest.raises(ValueError, match=f"more than {limit} bytes"):
            inflate(packed, limit)
    with pytest.raises(ValueError, match="cut off"):
        inflate(packed[:-6], 10 * len(data))
    with pytest.raises(zlib.error):
        inflate(b"no stream", 10)
