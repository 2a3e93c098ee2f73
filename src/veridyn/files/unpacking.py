"""How much a compressed file may hold: a small file that unpacks to more than any log is refused before it fills the memory.

    allowed_bytes(packed) = max(64 MiB, 100 × packed)

Recorded numbers shrink to between a half and a tenth; a hundredth is left to channels that stand still. Deflate itself allows a
thousandth, so that without a bound a file of 0.8 MB becomes 0.8 GB.
"""

from __future__ import annotations

import zlib

from veridyn.errors import Fault

ALWAYS_ALLOWED_BYTES = 64 * 2**20
MAX_RATIO = 100  # of unpacked to packed bytes


def allowed_bytes(packed: int) -> int:
    """How many bytes a file of `packed` bytes may unpack to."""
    return max(ALWAYS_ALLOWED_BYTES, MAX_RATIO * packed)


def too_large(unpacked: int, packed: int, hint: str = "") -> Fault | None:
    """The fault of a file of `packed` bytes that claims to hold `unpacked` ones; None where that is allowed."""
    if unpacked <= allowed_bytes(packed):
        return None
    return Fault(
        "it unpacks to more than is read from a file of its size.",
        expected=f"at most {allowed_bytes(packed)} bytes (64 MiB, or {MAX_RATIO} times the file)",
        found=f"{unpacked} bytes from {packed}",
        hint=hint or "Save it without compression if it is meant to be so large.",
    )


def inflate(packed: bytes | memoryview, limit: int) -> bytes:
    """What zlib packed, whole; a ValueError where it is cut off or holds more than `limit` bytes, without unpacking more."""
    unpacker = zlib.decompressobj()
    data = unpacker.decompress(packed, limit) if limit > 0 else b""  # zero would mean no limit at all
    left = unpacker.unconsumed_tail if limit > 0 else packed
    if not unpacker.eof:
        # At the limit exactly, the end mark may still stand in what is left.
        more = unpacker.decompress(left, 1)
        if more:
            raise ValueError(
                f"a compressed part unpacks to more than {limit} bytes, the most that is read from this file"
            )
        if not unpacker.eof:
            raise ValueError("a compressed part is cut off")
    return data
