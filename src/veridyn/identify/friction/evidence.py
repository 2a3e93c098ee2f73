"""What a friction ladder found: the terms that were tried, what held-out data say of each, and the machine with those that entered."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass, field, replace

import numpy as np

from veridyn.identify.friction.terms import load_signal
from veridyn.mechanics.tree.dynamics.inverse import inverse_dynamics
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion

NUMBERS = ("before_percent", "after_percent", "fall_percent", "sigma_percent")  # of a step


@dataclass(frozen=True, kw_only=True)
class LadderStep:
    """One term on one coordinate: held-out errors without and with it (‖r‖/‖y‖ over the weighted rows, percent), and the verdict.

    `fall_percent` is that of the held-out sum of squares, `sigma_percent` its standard error. `reason`: why it was not tried. `last`: the
    fall and its standard error once more, of a term that entered, beside all others that did; `enters` is the verdict after that.
    """

    term: str
    on: str
    elements: tuple[str, ...] = ()
    before_percent: float = float("nan")
    after_percent: float = float("nan")
    fall_percent: float = float("nan")
    sigma_percent: float = float("nan")
    enters: bool = False
    reason: str = ""
    last: tuple[float, float] | None = None

    @property
    def verdict(self) -> str:
        """What became of it, in words."""
        if self.reason:
            return self.reason
        return (
            "enters"
            if self.enters
            else "stays out"
            if self.last is None
            else "entered, and is not needed beside the others"
        )

    def summary(self) -> str:
        if self.reason:
            return f"{self.term} on {self.on}: {self.reason}"
        again = "" if self.last is None else f", at the end {self.last[0]:.3g} ± {self.last[1]:.2g} %"
        return (
            f"{self.term} on {self.on}: held-out error {self.before_percent:.4g} % to {self.after_percent:.4g} %, "
            f"its square falls by {self.fall_percent:.3g} ± {self.sigma_percent:.2g} %{again}; {self.verdict}"
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class FrictionLadder:
    """The machine with the terms that entered, and the evidence for each that was tried.

    `machine`: with the new terms, whose parameters are unknown. `rigid`: the values behind the loads at joints, where the term was tried.
    `blocks`: of how many blocks of the training data the errors are; `asked_blocks`: how many were asked for.
    """

    machine: Machine
    steps: tuple[LadderStep, ...]
    standard_errors: float
    after_percent: float
    rigid: Machine | None = None
    needs_loads: tuple[str, ...] = field(default=())
    blocks: int = 0
    asked_blocks: int = 0

    @property
    def note(self) -> str:
        """What few blocks mean for the evidence; empty where there are as many as were asked for."""
        if self.blocks >= self.asked_blocks:
            return ""
        return (
            f"The data have {self.blocks} blocks, where {self.asked_blocks} were asked for: no block is shorter than filtered noise is "
            "correlated, and those without samples in use do not count. A fall is compared with quantiles of Student's t of "
            f"{self.blocks - 1} degrees of freedom; the fewer, the more of the small terms are missed."
        )

    @property
    def entered(self) -> tuple[LadderStep, ...]:
        return tuple(s for s in self.steps if s.enters)

    def with_loads(self, motion: Motion) -> Motion:
        """The motion with the signals that load-dependent friction reads; as it is where none entered."""
        return motion if self.rigid is None or not self.needs_loads else with_loads(self.rigid, motion)

    @property
    def figures(self) -> dict[str, float]:
        """Counts, held-out errors at both ends, and the fall of each tried term with its standard error."""
        tried = [s for s in self.steps if not s.reason]
        out = {"friction_terms_tried": float(len(tried)), "friction_terms_entered": float(len(self.entered))}
        out["friction_blocks"] = float(self.blocks)
        if tried:
            out["friction_before_percent"] = tried[0].before_percent
            out["friction_after_percent"] = self.after_percent
        for s in tried:
            name = f"friction_{s.term}_{s.on}"
            out |= {f"{name}_fall": s.fall_percent / 100.0, f"{name}_fall_sigma": s.sigma_percent / 100.0}
            out[f"{name}_enters"] = float(s.enters)
        return out

    def table(self) -> str:
        """The evidence as the text of a CSV file; numbers of what was not tried are empty."""
        text = io.StringIO()
        out = csv.writer(text, lineterminator="\n")
        out.writerow(["term", "coordinate", *NUMBERS, "last_fall_percent", "last_sigma_percent", "enters", "verdict"])
        for s in self.steps:
            numbers = [*(getattr(s, name) for name in NUMBERS), *(s.last or (np.nan, np.nan))]
            cells = ["" if np.isnan(x) else f"{x:.9g}" for x in numbers]
            out.writerow([s.term, s.on, *cells, int(s.enters), s.verdict])
        return text.getvalue()

    def summary(self) -> str:
        times = "" if self.standard_errors == 1.0 else f"{self.standard_errors:g} times "
        head = f"{len(self.entered)} of {sum(not s.reason for s in self.steps)} terms enter: the held-out error falls by more than"
        lines = [f"{head} {times}its standard error", *(f"  {s.summary()}" for s in self.steps)]
        return "\n".join([*lines, f"note: {self.note}"] if self.note else lines)


def with_loads(rigid: Machine, motion: Motion) -> Motion:
    """The motion with the force that a machine without friction needs at each coordinate as a signal."""
    loads = inverse_dynamics(rigid, motion, "joints")
    own = {load_signal(c): loads[:, k] for k, c in enumerate(rigid.coordinates)}
    return replace(motion, signals={**motion.signals, **own})
