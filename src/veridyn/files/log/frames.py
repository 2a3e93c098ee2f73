"""Tables that are in memory already: data frames of pandas and polars, and tables of pyarrow. None of them is imported here.

A named index is a column like the others. Columns of dates and of durations are times in seconds, dates since 1970.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from veridyn.errors import Faults, part_at

Array = NDArray[np.float64]
NANOSECONDS = 1e9  # in a second


class Frame(Protocol):
    """A table with names of columns: pandas.DataFrame, polars.DataFrame, pyarrow.Table."""

    @property
    def columns(self) -> Any: ...

    @property
    def shape(self) -> tuple[int, int]: ...


class FrameTable:
    """The columns of a frame: their `headers`, those of dates with the unit s, and numbers on request."""

    def __init__(self, frame: Any) -> None:
        self._columns = _columns_of(frame)
        self.headers = tuple(f"{name} [s]" if _is_time(x) else name for name, x in self._columns)

    def read(self, used: Sequence[str], faults: Faults) -> dict[str, Array]:
        """The columns `used`, by header; what is no column of numbers goes to `faults`."""
        out = {}
        for header in used:
            x = self._columns[self.headers.index(header)][1]
            try:
                out[header] = _seconds(x) if _is_time(x) else x.astype(np.float64)
            except (TypeError, ValueError):
                kind = type(next((v for v in x if v is not None), None)).__name__ if x.dtype == object else f"{x.dtype}"
                faults.add(
                    "the column does not hold numbers.",
                    where=part_at("column", header),
                    found=kind,
                    hint="Choose the columns that hold numbers with columns={channel: header}.",
                )
        if self._columns and not len(self._columns[0][1]):
            faults.add("it holds no samples.", expected="rows of numbers", found="none")
        return out


def _is_time(x: NDArray[Any]) -> bool:
    return x.dtype.kind in "mM"


def _seconds(x: NDArray[Any]) -> Array:
    """Dates since 1970, or durations, in s; NaN where there is none."""
    whole = x.astype("datetime64[ns]" if x.dtype.kind == "M" else "timedelta64[ns]")
    return np.where(np.isnat(whole), np.nan, whole.astype(np.int64) / NANOSECONDS)


def _columns_of(frame: Any) -> list[tuple[str, NDArray[Any]]]:
    """Names and values of every column, a named index before them."""
    if hasattr(frame, "column_names"):  # pyarrow
        return [(name, np.asarray(frame.column(k).to_numpy())) for k, name in enumerate(frame.column_names)]
    if hasattr(frame, "iloc"):  # pandas
        made = [(f"{name}", np.asarray(frame.iloc[:, k].to_numpy())) for k, name in enumerate(frame.columns)]
        named = frame.index.names == [None]
        return made if named or len(frame.index.names) > 1 else [(f"{frame.index.name}", frame.index.to_numpy()), *made]
    return [(name, np.asarray(frame[name].to_numpy())) for name in frame.columns]
