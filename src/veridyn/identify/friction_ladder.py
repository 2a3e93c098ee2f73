"""A friction ladder: terms of friction enter a model one by one, each only if held-out data say so.

The terms are those of :mod:`veridyn.identify.friction_terms`. A term enters where the error on samples that the fit did not use falls by
more than its standard error (:mod:`veridyn.identify.statistics.held_out_blocks`), beside all that entered before. Viscous and Coulomb
friction are tried first, on one coordinate after the other; then, on each coordinate, always the higher term under which the error falls
most. In the end every term that entered is tried once more beside all the others, and goes where it is no longer needed. Only the training
data are used, so that those which judge the final model remain unseen. The speed of a Stribeck curve is the one of a bank that fits the
training data best, and is refined once the curve has entered.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from veridyn.arrays import Array
from veridyn.errors import DataError, Faults, IdentificationError, did_you_mean
from veridyn.identify.constants import stribeck_speeds
from veridyn.identify.estimators.least_squares import Solution, solve
from veridyn.identify.friction_terms import TERMS, Measured, candidates, load_signal, why_not
from veridyn.identify.logged import prepared_motions
from veridyn.identify.regression.observation import observation
from veridyn.identify.settings import IdentifySettings
from veridyn.identify.statistics.held_out_blocks import Fall, HeldOutBlocks, fall, held_out_blocks
from veridyn.mechanics.tree.dynamics.inverse import inverse_dynamics
from veridyn.mechanics.tree.of_machine import takes_machine
from veridyn.model.coordinates import Rows
from veridyn.model.elements.element import Element
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion
from veridyn.plain_text import harmless_cell
from veridyn.progress import Progress, silent

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
            out.writerow([s.term, harmless_cell(s.on), *cells, int(s.enters), s.verdict])
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


At = tuple[str, str]  # a term and a coordinate
BLOCKS, FOLDS = 40, 5
FIRST = ("viscous", "coulomb")  # terms that are tried before all others
# Speeds of Stribeck curves, in 90 % quantiles of the speed; a faster one is not static friction
BANK = np.geomspace(0.01, 0.3, 10)
FRICTION = ("damper", "coulomb", "stribeck", "tanh_friction")  # how kinds begin that are not part of the rigid machine


@takes_machine
def friction_ladder(
    machine: Machine,
    motion: Motion | Sequence[Motion],
    *,
    terms: Sequence[str] = TERMS,
    on: Sequence[str] | None = None,
    temperature: str | Mapping[str, str] = "",
    rows: Rows = "all",
    settings: IdentifySettings | None = None,
    blocks: int = BLOCKS,
    standard_errors: float = 1.0,
    progress: Progress = silent,
) -> FrictionLadder:
    """Choose the friction of a machine term by term, by errors on held-out blocks of its motions.

    Parameters
    ----------
    machine
        The machine. Friction that it has already stays, and is not tried.
    motion
        Training motions with measured forces; those that are to judge the result are not among them.
    terms
        What is tried: viscous, coulomb, asymmetric, stribeck, load, quadratic, temperature.
    on
        Coordinates; those with a motor if left out.
    temperature
        The measured signal of the term temperature (any unit of temperature differences), one for all or coordinate → signal.
    rows, settings
        Equations and how samples become them, as for :func:`identify`; of the settings sampling and engine are used.
    blocks
        Into how many blocks the samples are cut; a block must be longer than residuals are correlated. Where a filter of the
        equations correlates more of them than a block would have, there are fewer, and `note` of the result says so.
    standard_errors
        A term enters where the held-out error falls by more than so many of its standard errors; with few blocks by more, as Student's
        t has it for an estimated standard error.

    Returns
    -------
    FrictionLadder
        Its `machine` is to be identified; `steps` is the evidence.

    Raises
    ------
    IdentificationError
        Unknown terms or coordinates, a signal that a motion has not, or too few samples.
    """
    machine.need_joints("motion of joints")
    motions = prepared_motions(machine, motion)
    several = [motions] if isinstance(motions, Motion) else list(motions)
    names = list(machine.actuated_coordinates if on is None else on)
    heat = dict.fromkeys(names, temperature) if isinstance(temperature, str) else dict(temperature)
    _check(machine, several, terms, names, heat, blocks, standard_errors)
    if not several:
        raise DataError("there is no motion to choose friction from.", where="friction_ladder, motion")
    known = {c: _measured(machine, several, c, heat.get(c, "")) for c in names}
    how = settings or IdentifySettings()
    first = solve(observation(machine, several, rows, how))
    rigid = None
    if "load" in terms and not machine.closed:
        rigid = _rigid(machine, first)
        several = [with_loads(rigid, m) for m in several]
    reasons = {(term, c): why_not(machine, term, c, known[c]) for term in terms for c in names}
    offered = {
        at: [_prefixed(at, k, way) for k, way in enumerate(candidates(machine, *at, known[at[1]]))]
        for at, reason in reasons.items()
        if not reason
    }
    whole = machine.with_elements([e for ways in offered.values() for way in ways for e in way])
    held = held_out_blocks(whole, several, rows, how, first.row_sigma, blocks=blocks, folds=FOLDS, progress=progress)
    column = {e.parameter_name: whole.parameters.index(e.parameter_name) for e in whole.elements}
    ways = {at: [[column[e.parameter_name] for e in way] for way in found] for at, found in offered.items()}
    search = _Search(held, list(first.columns), machine.name, standard_errors)
    steps: dict[tuple[str, str], LadderStep] = {}
    rungs = [[at for at in ways if at[0] == term and at[1] == c] for term in FIRST for c in names]
    rungs += [[at for at in ways if at[0] not in FIRST and at[1] == c] for c in names]
    for number, rung in enumerate(rungs):
        progress("friction ladder", float(number), float(len(rungs)))
        steps |= search.add_terms(rung, ways)
    steps |= {at: replace(steps[at], **again) for at, again in search.drop_terms(ways).items()}
    listed = []
    for at, reason in reasons.items():
        own = [] if reason else candidates(machine, *at, known[at[1]])[0]
        step = LadderStep(term=at[0], on=at[1], reason=reason) if reason else steps[at]
        listed.append(replace(step, elements=tuple(e.parameter_name for e in own)))
    chosen = [e for at, way in search.entered.items() for e in candidates(machine, *at, known[at[1]])[way]]
    made = _refined(machine, chosen, several, known, rows, how)
    return FrictionLadder(
        machine=made,
        steps=tuple(listed),
        standard_errors=standard_errors,
        after_percent=search.percent(search.squares),
        rigid=rigid,
        needs_loads=tuple(load_signal(c) for term, c in search.entered if term == "load"),
        blocks=len(held.blocks),
        asked_blocks=blocks,
    )


class _Search:
    """The terms of the model so far and its held-out errors, and what another term would make of them."""

    def __init__(self, held: HeldOutBlocks, columns: list[int], name: str, standard_errors: float) -> None:
        self.held, self.base, self.standard_errors = held, columns, standard_errors
        self.entered: dict[At, int] = {}  # term and coordinate → the way in which it was added
        self.columns: dict[At, list[int]] = {}
        found = held.squares(columns)
        if found is None:
            raise IdentificationError(
                "some of the model's parameters are excited in one part of the motion alone, so that part cannot be held out.",
                where=f"{name}, friction ladder",
                hint="Give motions that excite every joint throughout, or make those parameters known.",
            )
        self.squares = found

    def add_terms(self, rung: Sequence[At], ways: Mapping[At, list[list[int]]]) -> dict[At, LadderStep]:
        """Try some terms, and let the one enter under which the error falls most, until none matters; the last trial of each."""
        steps: dict[At, LadderStep] = {}
        left = list(rung)
        while left:
            found = {at: self._tried(at, ways[at]) for at in left}
            steps |= {at: step for at, (step, _, _) in found.items()}
            best = max((at for at in left if steps[at].enters), key=lambda at: steps[at].fall_percent, default=None)
            if best is None:
                break
            _, way, squares = found[best]
            self.entered[best], self.columns[best], self.squares = way, ways[best][way], squares
            left.remove(best)
        return {at: step if at in self.entered else replace(step, enters=False) for at, step in steps.items()}

    def _tried(self, at: At, ways: list[list[int]]) -> tuple[LadderStep, int, Array]:
        """What held-out data say of a term, added in the way that fits the training data best; that way, and its sums of squares."""
        step = LadderStep(term=at[0], on=at[1])
        others = self._others(at)
        best = self._best(others, ways)
        if best is None:
            return (
                replace(step, reason="not tried: the motion does not separate it from what the model has"),
                0,
                self.squares,
            )
        after = self.held.squares([*others, *ways[best]])
        if after is None:
            return replace(step, reason="not tried: it is excited in one part of the motion alone"), 0, self.squares
        found = fall(self.squares, after)
        step = replace(
            step,
            before_percent=self.percent(self.squares),
            after_percent=self.percent(after),
            fall_percent=100.0 * found.share,
            sigma_percent=100.0 * found.sigma,
            enters=self._matters(found),
        )
        return step, best, after

    def drop_terms(self, ways: Mapping[At, list[list[int]]]) -> dict[At, dict[str, Any]]:
        """Take terms out that the others have made needless, the highest rung first; for each that entered, its last trial."""
        last: dict[At, dict[str, Any]] = {}
        while self.entered:
            falls: dict[At, tuple[Fall, Array]] = {}
            for at in self.entered:
                others = self._others(at)
                best = self._best(others, ways[at])
                without = self.held.squares(others)
                after = None if best is None else self.held.squares([*others, *ways[at][best]])
                if without is None or after is None or best is None:
                    continue
                self.entered[at], self.columns[at], self.squares = best, ways[at][best], after
                falls[at] = fall(without, after), without
            last |= {at: {"last": (100.0 * f.share, 100.0 * f.sigma), "enters": True} for at, (f, _) in falls.items()}
            needless = [at for at, (found, _) in falls.items() if not self._matters(found)]
            if not needless:
                break
            gone = needless[-1]
            last[gone]["enters"] = False
            del self.entered[gone], self.columns[gone]
            self.squares = falls[gone][1]
        return last

    def percent(self, squares: Array) -> float:
        """A held-out sum of squares as an error, in percent of what is measured."""
        return 100.0 * float(np.sqrt(squares.sum() / self.held.measured))

    def _others(self, at: At) -> list[int]:
        return [*self.base, *(c for other, own in self.columns.items() if other != at for c in own)]

    def _best(self, others: list[int], ways: list[list[int]]) -> int | None:
        apart = [k for k, way in enumerate(ways) if self.held.separates([*others, *way], len(way))]
        return min(apart, key=lambda k: self.held.training_square([*others, *ways[k]]), default=None)

    def _matters(self, found: Fall) -> bool:
        return found.exceeds(self.standard_errors)


def _prefixed(at: tuple[str, str], way: int, elements: Sequence[Element]) -> list[Element]:
    """Elements under names that no other way to add a term has."""
    return [replace(e, name=f"{at[0]} {at[1]} {way} {e.parameter_name}") for e in elements]


def _measured(machine: Machine, motions: Sequence[Motion], c: str, temperature: str) -> Measured:
    k = machine.coordinates.index(c)
    speed = float(np.quantile(np.abs(np.concatenate([m.qd[:, k] for m in motions])), 0.9))
    mean = float(np.mean(np.concatenate([m.signals[temperature] for m in motions]))) if temperature else 0.0
    return Measured(temperature, float(f"{mean:.4g}"), tuple(float(v) for v in BANK * (speed or 1.0)))


def _rigid(machine: Machine, first: Solution) -> Machine:
    """The machine without friction, with values that reproduce the fit, for the forces that load its joints."""
    p = machine.parameters
    phi = np.where(np.isfinite(p.values), p.values, 0.0)
    phi[[k for k, state in enumerate(p.states) if state == "estimated"]] = 0.0
    phi[list(first.columns)] = first.values
    for name, tie in p.ties.items():
        phi[p.index(name)] = tie.factor * phi[p.index(tie.to)]
    for e in machine.elements:
        if e.kind.startswith(FRICTION) or (e.own_law is not None and "v" in e.own_law.own) or e.kind == "drive_gain":
            phi[p.index(e.parameter_name)] = 0.0
    return machine.with_parameters(phi)


def _refined(
    machine: Machine,
    chosen: Sequence[Element],
    motions: Sequence[Motion],
    known: Mapping[str, Measured],
    rows: Rows,
    settings: IdentifySettings,
) -> Machine:
    """The machine with what was chosen; speeds of Stribeck curves from a finer bank, one coordinate after the other."""
    made = machine.with_elements([e for e in chosen if e.kind != "stribeck"])
    for e in chosen:
        if e.kind == "stribeck":
            (c,) = e.on
            made, _ = stribeck_speeds(made, motions, [c], known[c].speeds, rows=rows, settings=settings)
    return made


def _check(
    machine: Machine,
    motions: Sequence[Motion],
    terms: Sequence[str],
    names: Sequence[str],
    heat: Mapping[str, str],
    blocks: int,
    standard_errors: float,
) -> None:
    faults = Faults()
    where = "friction_ladder"
    for term in terms:
        if term not in TERMS:
            faults.add(
                f"there is no term '{term}'.", where=where, expected=", ".join(TERMS), hint=did_you_mean(term, TERMS)
            )
    for c in [*names, *(c for c in heat if c not in names)]:
        if c not in machine.coordinates:
            faults.add(f"there is no coordinate '{c}'.", where=where, hint=did_you_mean(c, machine.coordinates))
    if not names or not terms:
        faults.add("there is nothing to try: it needs a term and a coordinate.", where=where)
    for signal in {s for s in heat.values() if s}:
        missing = [m for m in motions if signal not in m.signals]
        if missing:
            have = sorted({name for m in motions for name in m.signals})
            hint = f"Add the column signal.{signal} to the log. Signals: {', '.join(have) or 'none'}."
            faults.add(f"a motion has no signal '{signal}'.", where=f"{where}, temperature", hint=hint)
        elif not signal.isidentifier():
            faults.add(f"a formula cannot name the signal '{signal}'.", where=where, expected="letters, digits and _")
    if "load" in terms and len({load_signal(c) for c in machine.coordinates}) < machine.n:
        hint = "Rename them, or leave the term load out."
        faults.add("coordinates differ only in characters that a formula cannot name.", where=where, hint=hint)
    if blocks < 10:
        faults.add("there are too few blocks.", where=where, expected="10 or more", found=f"{blocks}")
    if not (np.isfinite(standard_errors) and standard_errors >= 0.0):
        faults.add("standard_errors is not usable.", where=where, expected="0 or more", found=f"{standard_errors}")
    faults.raise_if_any(IdentificationError, machine.name)
