"""How logs become motions and motions equations, as a study says it and as every door does by default."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Literal

from veridyn.settings import at_least, from_to
from veridyn.signals.mending import Mending


@dataclass(frozen=True, kw_only=True)
class Preparation:
    """How logs become motions, and motions equations; what is "auto" is chosen by the rule of every door.

    Parameters
    ----------
    mending : Mending
        What is done about bad clocks and values.
    rate : float, or None
        Rate of the common clock, Hz; that of the fastest channel if left out.
    lowpass : float, "auto", or None
        Cut-off of the zero-phase low-pass of positions, Hz; auto: one is proposed from the training logs.
    order : int from 1 to 12
        Its order, for one pass.
    candidates : floats
        Cut-offs that auto tries, Hz; from 1 to 40 % of the rate if left out.
    derivative : "compensated" or "central"
        How rates are differentiated.
    measured_rates : bool
        Whether measured speeds and accelerations are used; otherwise they are only checked.
    trim : float, or "auto"
        Seconds left out at both ends of each piece of a log, where filters know less; auto: what the low-pass takes to settle at ends
        that are in motion, two periods of its cut-off at order 4, and nothing at ends at rest.
    interpolation : "cubic", "linear" or "pchip"
        How channels are brought to the common clock.
    standstill : "keep" or "drop"
        Spans of a second and more in which a joint rests: keep them, or leave them out of the row of that joint, where friction may be
        anything.
    delays : "report", "correct" or "ignore"
        Delays of force channels against the motion: say, also take them out, or do not look.
    filter : float, "same", or None
        Low-pass of columns and measured forces, in parallel, Hz; same: that of the positions, whatever the length of the log.
    filter_order : int, or None
        Its order; that of the positions if left out.
    decimate : int, or "auto"
        One equation in so many is kept; auto: as many as are independent behind the filter, and four for each base parameter at least.
    dead_zone : float, "auto", or mapping of names to floats
        Speed below which a row leaves out its samples, one for all or row → speed: dry friction is not sign(speed) there; auto: chosen for
        each joint with dry friction from its speeds in the training logs; 0: none are left out.
    cut : int of at least 0
        Samples left out at both ends of each piece.
    """

    mending: Mending = field(default_factory=Mending)
    rate: float | None = None
    lowpass: float | Literal["auto"] | None = "auto"
    order: Annotated[int, from_to(1, 12)] = 4
    candidates: tuple[float, ...] = ()
    derivative: Literal["compensated", "central"] = "compensated"
    measured_rates: bool = False
    trim: float | Literal["auto"] = "auto"
    interpolation: Literal["cubic", "linear", "pchip"] = "cubic"
    standstill: Literal["keep", "drop"] = "keep"
    delays: Literal["report", "correct", "ignore"] = "report"
    filter: float | Literal["same"] | None = "same"
    filter_order: int | None = None
    decimate: int | Literal["auto"] = "auto"
    dead_zone: float | Literal["auto"] | Mapping[str, float] = "auto"
    cut: Annotated[int, at_least(0)] = 0

    @property
    def by_rule(self) -> bool:
        """Whether filter, decimation and dead zones are left to the rule."""
        return (self.filter, self.decimate, self.dead_zone) == ("same", "auto", "auto")
