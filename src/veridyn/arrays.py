"""The type of an array of numbers, one name for it throughout the package; and records with read-only mappings."""

from dataclasses import fields
from functools import partial
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


class Record:
    """A frozen dataclass that is pickled by its fields: read-only views of mappings, which cannot be pickled, travel as dictionaries."""

    def __reduce__(self) -> tuple[Any, ...]:
        own = {f.name: getattr(self, f.name) for f in fields(self)}  # pyright: ignore[reportArgumentType]
        return partial(type(self), **{k: dict(x) if isinstance(x, MappingProxyType) else x for k, x in own.items()}), ()
