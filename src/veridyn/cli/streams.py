"""Output whose reader has gone, as behind ``| head``, and output that cannot be written, as on a full disk.

veridyn capabilities | head -1        ends with 0, without a message: what nobody reads leads nowhere, and the work goes on
veridyn capabilities > /dev/full      FileError: stdout, it cannot be written: No space left on device.        ends with 2
"""

from __future__ import annotations

import errno
import io
import sys
from typing import Any

from veridyn.errors import FileError

GONE = (errno.EPIPE, errno.ECONNRESET) + (
    (errno.EINVAL,) if sys.platform == "win32" else ()
)  # what a closed pipe answers


class PatientOutput(io.RawIOBase):
    """The raw stream below a text stream. From the first write that fails on, what is written leads nowhere."""

    def __init__(self, raw: io.FileIO, name: str) -> None:
        super().__init__()
        self._raw, self._name, self._lost = raw, name, False

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


def keep_writing() -> None:
    """Put :class:`PatientOutput` below stdout and stderr; streams that are not files of the process are left alone."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        buffer = getattr(stream, "buffer", None)
        raw = getattr(buffer, "raw", buffer)  # without a buffer where PYTHONUNBUFFERED is set
        if not isinstance(stream, io.TextIOWrapper) or type(raw) is not io.FileIO:
            continue
        stream.flush()
        patient = io.TextIOWrapper(
            io.BufferedWriter(PatientOutput(raw, name)),
            encoding=stream.encoding,
            errors=stream.errors,
            line_buffering=stream.line_buffering,
            write_through=stream.write_through,
        )
        setattr(sys, name, patient)
