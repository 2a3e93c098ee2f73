"""How a fit by output error simulates its machine, so that it can be judged on other data by what it was fitted to."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal


@dataclass(frozen=True, kw_only=True)
class ReplaySettings:
    """Arguments of :func:`~veridyn.identify.replay.replay`, as in :class:`~veridyn.identify.estimators.output_error.OutputError`.

    `outputs`: coordinates that are compared, all by default. With a control `law` forces are compared.
    """

    horizon: float = math.inf
    hold: Literal["linear", "zero"] = "linear"
    friction_speed: float = 0.05
    substeps: int = 1
    outputs: tuple[str, ...] = ()
    law: Callable[..., Any] | None = field(default=None, compare=False)

    @property
    def words(self) -> str:
        """How long a run is: "in runs of 1 s" or "over whole logs"."""
        return "over whole logs" if math.isinf(self.horizon) else f"in runs of {self.horizon:g} s"
