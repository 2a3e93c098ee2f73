"""What can be asked of a machine without knowing how it is computed: its names, and what acts on it and measures it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from veridyn.model.elements.constants import ElementState
from veridyn.model.elements.element import Element
from veridyn.model.elements.transmission import Transmission
from veridyn.model.load import Load
from veridyn.model.parameters import ParameterSet
from veridyn.model.sensor import Sensor


class MachineParts(Protocol):
    """A machine, or the form of it that a formulation computes with.

    `root`: the body of a free base, or ""; `closed`: whether joints form loops.
    Everything else is that of :class:`~veridyn.model.machine.Machine`.
    """

    @property
    def name(self) -> str: ...
    @property
    def coordinates(self) -> tuple[str, ...]: ...
    @property
    def coordinate_kinds(self) -> tuple[str, ...]: ...
    @property
    def actuated(self) -> tuple[bool, ...]: ...
    @property
    def n(self) -> int: ...
    @property
    def base(self) -> Literal["fixed", "free"]: ...
    @property
    def root(self) -> str: ...
    @property
    def closed(self) -> bool: ...
    @property
    def body_names(self) -> tuple[str, ...]: ...
    @property
    def gravity(self) -> NDArray[np.float64]: ...
    @property
    def elements(self) -> Sequence[Element]: ...
    @property
    def loads(self) -> Sequence[Load]: ...
    @property
    def sensors(self) -> Sequence[Sensor]: ...
    @property
    def transmission(self) -> Transmission | None: ...
    @property
    def states(self) -> Sequence[ElementState]: ...
    @property
    def parameters(self) -> ParameterSet: ...
