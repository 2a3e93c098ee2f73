"""Output whose reader has gone, as behind ``| head``, or that cannot be written, as on a full disk; and names that a terminal would obey.

veridyn capabilities | head -1        ends with 0, without a message: what nobody reads leads nowhere, and the work goes on
veridyn capabilities > /dev/full      FileError: stdout, it cannot be written: No space left on device.        ends with 2
"""

from __future__ import annotations

import errno
import io
import sys
from typing import Any

from veridyn.errors import FileError
from veridyn.plain_text import visible

GONE = (errno.EPIPE, errno.ECONNRESET) + (
    (errno.EINVAL,) if sys.platform == "win32" else ()
)  # what a closed pipe answers


class PatientOutput(io.RawIOBase):
    """The raw stream below a text stream. From the first write that fails on, what is written leads nowhere."""

    def __init__(self, raw: io.FileIO, name: str, above: object = None) -> None:
        """`above`: the stream that `raw` belongs to, which would close it where nobody keeps it."""
        super().__init__()
        self._raw, self._name, self._above, self._lost = raw, name, above, False

    def write(self, data: Any, /) -> int:
        if not self._lost:
            try:
                return self._raw.write(data) or 0
            except OSError as error:
                self._lost = True
                if error.errno not in GONE:
                    what = f"it cannot be written: {error.strerror or error}."
                    raise FileError(what, source=self._name) from error
        return memoryview(data).nbytes

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._raw.fileno()

    def isatty(self) -> bool:
        return self._raw.isatty()


class VisibleText(io.TextIOWrapper):
    """Text on its way to a terminal: control characters of names and files are shown as pictures."""

    def write(self, text: str, /) -> int:
        return super().write(visible(text))


class Unfiltered:
    """The same stream for a writer that makes control sequences itself, as rich does, and cleans what it is given."""

    def __init__(self, stream: VisibleText) -> None:
        self._stream = stream

    def write(self, text: str, /) -> int:
        return io.TextIOWrapper.write(self._stream, text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def unfiltered(stream: Any) -> Any:
    """A stream as rich writes to it."""
    return Unfiltered(stream) if isinstance(stream, VisibleText) else stream


def keep_writing() -> None:
    """Put :class:`PatientOutput` below stdout and stderr, and :class:`VisibleText` above it; streams that are not files of the process are
    left alone."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        buffer = getattr(stream, "buffer", None)
        raw = getattr(buffer, "raw", buffer)  # without a buffer where PYTHONUNBUFFERED is set
        if not isinstance(stream, io.TextIOWrapper) or type(raw) is not io.FileIO:
            continue
        stream.flush()
        patient = VisibleText(
            io.BufferedWriter(PatientOutput(raw, name, stream)),
            encoding=stream.encoding,
            errors=stream.errors,
            line_buffering=stream.line_buffering,
            write_through=stream.write_through,
        )
        setattr(sys, name, patient)
