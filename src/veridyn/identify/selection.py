"""Choices of what is worth most: motions of a machine by their information, and the parameters that data say enough about.

Motions are ordered by greedy D-optimal choice on row factors. A motion brings the information A_k = Σ_j R_jᵀR_j / σ_j², of columns scaled
by typical sizes. With a weak belief to start from, A = 1/ρ² (each parameter known to ρ typical sizes), the motion that adds most to log
det A is taken, then the next. Greedy choice is within 1 − 1/e of the best subset, since log det is submodular (Nemhauser, Wolsey and
Fisher 1978); exchanges then try to do better. Nothing is measured: candidates need coordinates and their rates only.

Essential parameters are those left when the ones the data say least about are dropped, one by one, until the rest is well determined.
After each removal the rest is estimated anew from the same factors. The paper calls the removed ones not well identified (IV.B); the
order, largest relative deviation first, is that of Pham and Gautier (1991). Where it ends is a matter of the rule:

- ratio: when the largest relative deviation is at most so many times the smallest (Gautier's rule; 10 to 30 are usual);
- f_test: before all removals together raise the residual by more than chance allows, against the full model;
- ratio_and_f_test: at the first of the ratio, or a single parameter that an F test calls significant.

An F test takes residuals for white. A parameter stands for its whole group: removed, the sum that it leads is zero.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import get_args

import numpy as np
from scipy.special import fdtrc  # scipy.stats takes a second to import

from veridyn.arrays import Array
from veridyn.errors import Faults, IdentificationError, did_you_mean
from veridyn.identify.base import RANK_TOLERANCE, Groups, group
from veridyn.identify.essential_rule import EssentialRule, Rule
from veridyn.identify.estimator import WLS, fit_of
from veridyn.identify.estimators.least_squares import Solution, solved
from veridyn.identify.regression.factor import RowFactors, one_blas_thread, triangle_of
from veridyn.identify.regression.observation import observation
from veridyn.identify.result import Fit
from veridyn.identify.settings import SIGMA_BELOW_TEN, Acceptance, IdentifySettings
from veridyn.mechanics.tree.of_machine import takes_machine
from veridyn.model.coordinates import Rows
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion
from veridyn.progress import Progress, silent

DETERMINED_SIGMA = 0.3  # of a parameter's typical size


@dataclass(frozen=True)
class Stage:
    """After one more motion: how many base parameters the motions so far excite, and how many of them are determined.

    `gain`: what it added to log det of the information, in nats; `determined`: predicted deviation under 30 % of typical size.
    """

    motion: str
    gain: float
    excited: int
    determined: int


@dataclass(frozen=True, eq=False)
class Selection:
    """Motions in the order to record them. `names`, `sigma` and `typical` are of the base parameters that all of them together excite."""

    stages: tuple[Stage, ...]
    names: tuple[str, ...]
    sigma: Array
    typical: Array
    left_out: tuple[str, ...]

    @property
    def order(self) -> tuple[str, ...]:
        return tuple(stage.motion for stage in self.stages)

    @property
    def undetermined(self) -> tuple[str, ...]:
        """Base parameters whose predicted deviation is 30 % of typical size or more."""
        return tuple(
            n for n, s, size in zip(self.names, self.sigma, self.typical, strict=True) if s >= DETERMINED_SIGMA * size
        )

    def summary(self) -> str:
        lines = [f"{'motion':<28}{'gain':>9}{'excited':>9}{'determined':>12}"]
        lines += [f"{s.motion:<28}{s.gain:9.1f}{s.excited:9d}{s.determined:12d}" for s in self.stages]
        lines += [f"not taken: {', '.join(self.left_out)}"] if self.left_out else []
        return "\n".join(lines)


@takes_machine
def select_motions(
    machine: Machine,
    candidates: Mapping[str, Motion | Sequence[Motion]],
    sigma: Mapping[str, float],
    count: int | None = None,
    rows: Rows = "all",
    *,
    cost: Mapping[str, float] | None = None,
    belief: float = 10.0,
    settings: IdentifySettings | None = None,
    progress: Progress = silent,
) -> Selection:
    """The `count` motions of the candidates (all, where not given) that determine the estimated parameters best, in order.

    `sigma`: deviation of each row's equations. `cost`: what each motion costs, such as its time; the gain counts per cost. `belief`:
    how many typical sizes the parameters may be off before anything is measured. `settings`: sampling and engine are used.
    """
    _check(machine, candidates, sigma, count, cost, belief, rows)
    wanted = len(candidates) if count is None else count
    observed: dict[str, RowFactors] = {}
    for k, (name, motion) in enumerate(candidates.items()):
        progress("weighing motions", float(k), float(len(candidates)))
        observed[name] = observation(machine, unmeasured(motion), rows, settings)
    progress("weighing motions", float(len(candidates)), float(len(candidates)))
    columns = sorted({c for o in observed.values() for c in o.columns})
    typical = machine.parameters.typical[columns]
    factor = {name: _factor(o, columns, sigma) for name, o in observed.items()}
    information = {name: (R * typical).T @ (R * typical) for name, R in factor.items()}
    start = np.eye(len(columns)) / belief**2
    price = {name: (cost or {}).get(name, 1.0) for name in candidates}
    chosen = _greedy(information, start, price, wanted)
    if wanted < len(candidates) and cost is None:
        chosen = _greedy({n: information[n] for n in _exchanged(information, start, chosen)}, start, price, wanted)
    stages, total, R = [], start, np.zeros((0, len(columns)))
    for name in chosen:
        before = _log_det(total)
        total = total + information[name]
        R = triangle_of(np.vstack([R, factor[name]]))
        leads, spread = _deviations(R, typical, total)
        known = int((spread < DETERMINED_SIGMA * typical[list(leads)]).sum())
        stages.append(Stage(name, _log_det(total) - before, len(leads), known))
    leads, spread = _deviations(R, typical, total)
    names = tuple(machine.parameters.names[columns[k]] for k in leads)
    left = tuple(n for n in candidates if n not in chosen)
    return Selection(tuple(stages), names, spread, typical[list(leads)], left)


@dataclass(frozen=True)
class Remedy:
    """For one base parameter: its deviation now, and the one motion more that would make it smallest."""

    name: str
    now: float
    motion: str
    then: float


@takes_machine
def remedies(
    machine: Machine,
    have: Motion | Sequence[Motion],
    candidates: Mapping[str, Motion | Sequence[Motion]],
    sigma: Mapping[str, float],
    rows: Rows = "all",
    *,
    belief: float = 10.0,
    settings: IdentifySettings | None = None,
) -> tuple[Remedy, ...]:
    """What to record next: for every base parameter that the motions `have` leave undetermined, the candidate that helps it most."""
    _check(machine, candidates, sigma, None, None, belief, rows)
    known = observation(machine, unmeasured(have), rows, settings)
    others = {name: observation(machine, unmeasured(m), rows, settings) for name, m in candidates.items()}
    columns = sorted({c for o in (known, *others.values()) for c in o.columns})
    typical = machine.parameters.typical[columns]
    factors = {name: _factor(o, columns, sigma) for name, o in others.items()}
    R = _factor(known, columns, sigma)
    start = np.eye(len(columns)) / belief**2 + (R * typical).T @ (R * typical)
    groups = group(np.vstack([R, *factors.values()]), typical, RANK_TOLERANCE)
    root = groups.matrix * typical

    def spread(A: Array) -> Array:
        return np.sqrt(np.einsum("ij,jk,ik->i", root, np.linalg.inv(A), root))

    now = spread(start)
    then = {name: spread(start + (F * typical).T @ (F * typical)) for name, F in factors.items()}
    out = []
    for k, lead in enumerate(groups.kept):
        if now[k] >= DETERMINED_SIGMA * typical[lead]:
            best = min(then, key=lambda name: then[name][k])
            out.append(Remedy(machine.parameters.names[columns[lead]], float(now[k]), best, float(then[best][k])))
    return tuple(out)


def unmeasured(motion: Motion | Sequence[Motion]) -> list[Motion]:
    """The motions with zero for every force: their information does not depend on what is measured."""
    several = [motion] if isinstance(motion, Motion) else list(motion)
    return [replace(m, forces=np.zeros_like(m.q)) for m in several]


def _factor(o: RowFactors, columns: list[int], sigma: Mapping[str, float]) -> Array:
    """The R factor of all rows over the common columns, without the measurement."""
    R = o.stacked([1.0 / sigma[f.row] for f in o.rows])[:, :-1]
    wide = np.zeros((len(R), len(columns)))
    wide[:, [columns.index(c) for c in o.columns]] = R
    return wide


def _greedy(information: Mapping[str, Array], start: Array, price: Mapping[str, float], count: int) -> list[str]:
    chosen: list[str] = []
    total = start
    while len(chosen) < count:
        left = [n for n in information if n not in chosen]
        now = _log_det(total)
        best = max(left, key=lambda n: (_log_det(total + information[n]) - now) / price[n])
        chosen.append(best)
        total = total + information[best]
    return chosen


def _exchanged(information: Mapping[str, Array], start: Array, chosen: list[str]) -> list[str]:
    """The subset after exchanges of one motion for another, as long as one helps."""
    own = list(chosen)
    value = _log_det(start + sum(information[n] for n in own))
    better = True
    while better:
        better = False
        for out in list(own):
            for other in [n for n in information if n not in own]:
                tried = [other if n == out else n for n in own]
                found = _log_det(start + sum(information[n] for n in tried))
                if found > value + 1e-9 * abs(value):
                    own, value, better = tried, found, True
                    break
            if better:
                break
    return own


def _deviations(R: Array, typical: Array, total: Array) -> tuple[tuple[int, ...], Array]:
    """Leads of the groups that R excites, and the deviation of each group under information `total` (of scaled columns)."""
    groups = group(R, typical, RANK_TOLERANCE)
    root = groups.matrix * typical
    return groups.kept, np.sqrt(np.einsum("ij,jk,ik->i", root, np.linalg.inv(total), root))


def _log_det(A: Array) -> float:
    return float(np.linalg.slogdet(A)[1])


def _check(
    machine: Machine,
    candidates: Mapping[str, Motion | Sequence[Motion]],
    sigma: Mapping[str, float],
    count: int | None,
    cost: Mapping[str, float] | None,
    belief: float,
    rows: Rows,
) -> None:
    faults = Faults()
    named = [machine.rows[r] for r in machine.select_rows(rows)]
    if not candidates:
        faults.add("there is no motion to choose from.", where="candidates")
    for row in named:
        if row not in sigma:
            faults.add(
                f"row '{row}' has no deviation.",
                where="sigma",
                hint="The noise of a row decides what can be identified from it.",
            )
        elif not (np.isfinite(sigma[row]) and sigma[row] > 0.0):
            faults.add("a deviation must be positive.", where=f"sigma['{row}']", found=f"{sigma[row]}")
    if count is not None and not 1 <= count <= len(candidates):
        faults.add("so many cannot be chosen.", where="count", expected=f"1 to {len(candidates)}", found=f"{count}")
    for name, price in (cost or {}).items():
        if name not in candidates:
            faults.add(f"'{name}' is no candidate.", where="cost", hint=did_you_mean(name, list(candidates)))
        elif not (np.isfinite(price) and price > 0.0):
            faults.add("a cost must be positive.", where=f"cost['{name}']", found=f"{price}")
    if not (np.isfinite(belief) and belief > 0.0):
        faults.add("it must be positive.", where="belief", found=f"{belief}")
    faults.raise_if_any(IdentificationError)


@dataclass(frozen=True)
class EliminationStep:
    """One removal: which parameter, its σ % before, the F statistic of leaving it out and the chance of as large a one if it were zero.

    `joint_p_value`: the same chance for it and all that were removed before, against the full model.
    """

    name: str
    relative_sigma: float
    f_statistic: float
    p_value: float
    joint_p_value: float = float("nan")


@dataclass(frozen=True, eq=False)
class Essential:
    """The fit of the essential parameters, and the steps that led to it; `rule` says when they ended."""

    fit: Fit
    steps: tuple[EliminationStep, ...]
    rule: str = "ratio_and_f_test"
    ratio: float = 30.0
    significance: float = 0.05

    @property
    def stated_rule(self) -> str:
        """The rule in words."""
        ratio = f"relative deviations at most {self.ratio:g} times the smallest"
        test = f"at a significance of {100.0 * self.significance:g} %"
        words = {"ratio": ratio, "f_test": f"an F test of all removed together {test}"}
        return words.get(self.rule, f"{ratio}, and an F test of each {test}")

    def summary(self) -> str:
        lines = [f"{len(self.fit.values)} essential parameters, {len(self.steps)} removed"]
        lines += [
            f"  {s.name}: sigma% {min(s.relative_sigma, 9999.9):.1f}, F {s.f_statistic:.3g}, p {s.p_value:.3g}"
            for s in self.steps
        ]
        return "\n".join(lines)


def essential_by(
    how: EssentialRule, machine: Machine, solution: Solution, acceptance: Acceptance = SIGMA_BELOW_TEN
) -> Essential:
    """The essential parameters of a solution by a rule with its settings; all of them where the rule is "none"."""
    if how.rule == "none":
        return Essential(fit_of(machine, solution, WLS.title, acceptance), (), how.rule, how.ratio, how.significance)
    settings = {"ratio": how.ratio, "significance": how.significance, "acceptance": acceptance}
    return essential(machine, solution, rule=how.rule, **settings)  # pyright: ignore[reportArgumentType]


@takes_machine
def essential(
    machine: Machine,
    solution: Solution,
    *,
    rule: Rule = "ratio_and_f_test",
    ratio: float = 30.0,
    significance: float = 0.05,
    title: str = WLS.title,
    acceptance: Acceptance = SIGMA_BELOW_TEN,
) -> Essential:
    """Remove the parameter with the largest σ % for as long as the rule allows.

    `ratio` is that of the largest to the smallest σ % at which "ratio" ends, `significance` that of the F tests. By default a removal that
    raises the residual by more than chance allows (F test of one parameter, weights held) is not made, and the search stops: what matters
    to the forces stays, however badly it is known. The fit predicts with removed groups at zero and other members at their priors.
    """
    if rule not in get_args(Rule):
        raise IdentificationError(f"there is no rule '{rule}'.", where="essential", expected=", ".join(get_args(Rule)))
    if ratio < 1.0 or not 0.0 < significance < 1.0:
        raise IdentificationError("ratio must be at least 1 and significance within 0 to 1.", where="essential")
    names = solution.observation.parameters.names
    full = solution
    removed: list[str] = []
    steps: list[EliminationStep] = []
    with one_blas_thread():
        R = solution.observation.stacked(list(1.0 / solution.row_sigma))
        while len(solution.columns) > 1:
            deviation = np.sqrt(np.diag(solution.covariance))
            with np.errstate(divide="ignore"):
                relative = 100.0 * deviation / np.abs(solution.values)
            worst = int(np.argmax(relative))
            if rule != "f_test" and relative[worst] <= ratio * relative.min():
                break
            statistic = float((solution.values[worst] / deviation[worst]) ** 2)
            chance = float(fdtrc(1, solution.freedom, statistic))
            if rule == "ratio_and_f_test" and chance < significance:
                break
            fewer = solved(
                solution.observation, R, _without(solution.groups, worst), solution.row_sigma, solution.tolerance
            )
            together = _joint_chance(full, fewer)
            if rule == "f_test" and together < significance:
                break
            name = names[solution.columns[worst]]
            steps.append(EliminationStep(name, float(relative[worst]), statistic, chance, together))
            removed.append(name)
            solution = fewer
    fit = fit_of(machine, solution, title, acceptance, tuple(removed))
    if removed:
        fit = replace(fit, standard_values=_standard(full, solution))
    return Essential(fit, tuple(steps), rule, ratio, significance)


def _joint_chance(full: Solution, fewer: Solution) -> float:
    """The chance of as large a rise of the residual if all removed parameters were zero."""
    own = full.sigma**2 * full.freedom
    rise = max(fewer.sigma**2 * fewer.freedom - own, 0.0)
    count = fewer.freedom - full.freedom
    return float(fdtrc(count, full.freedom, rise / count / (own / full.freedom))) if own > 0.0 else float(rise == 0.0)


def _standard(full: Solution, fewer: Solution) -> Array:
    """Standard parameters whose removed groups are zero, and whose other groups are as estimated; other members at their priors."""
    p, own = full.observation.parameters, list(full.observation.columns)
    phi = np.where(np.isfinite(p.values), p.values, 0.0)
    found = dict(zip(fewer.columns, fewer.values, strict=True))
    leads = list(full.columns)
    phi[leads] = 0.0
    phi[leads] = np.array([found.get(c, 0.0) for c in leads]) - full.groups.matrix @ phi[own]
    return phi


def _without(groups: Groups, k: int) -> Groups:
    """The groups less the k-th, whose leading column counts as removed, not as dead."""
    kept = groups.kept[:k] + groups.kept[k + 1 :]
    return replace(groups, kept=kept, matrix=np.delete(groups.matrix, k, axis=0))
