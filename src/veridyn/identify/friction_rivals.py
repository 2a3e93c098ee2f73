"""A choice between rival models of friction, such as of passive joints of a closed loop, whose forces nobody measures: paper 002, (11).

A friction ladder (:mod:`veridyn.identify.friction_ladder`) tries one term on one coordinate. In closed loops models differ by more at once:
one friction for all joints that are alike, or one for each, dry, viscous or both. The paper looks at the condition of the correlation
matrix ρ of the estimates while the model grows. The rule here has two parts, both stated:

1. A rival predicts better where the error on blocks of samples that no fit used falls by more than `standard_errors` of its standard
   errors (:mod:`veridyn.identify.statistics.held_out_blocks`).
2. It is borne by the motion where its price is at most `price_limit`: the growth of cond ρ times what is left of the held-out square. The
   smallest eigenvalue of ρ is the variance that a combination of the parameters would have alone over what it has beside the others, and
   variances are in proportion to the residual's; so the price is that of the worst combination's variance. Variances go with one over the
   samples: a price of two is that of half of the data.

Rivals are tried from the smallest to the largest, each against the one chosen so far, whose place it takes where it predicts better and is
borne. One that predicts better and is not borne is reported as that: another motion would tell.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from veridyn.arguments import checked
from veridyn.arrays import Array
from veridyn.errors import DataError, IdentificationError
from veridyn.identify.estimators.least_squares import Solution, solve
from veridyn.identify.excitation.problem import correlation
from veridyn.identify.friction_ladder import BLOCKS, FOLDS
from veridyn.identify.logged import prepared_motions
from veridyn.identify.regression.observation import observation
from veridyn.identify.settings import IdentifySettings
from veridyn.identify.statistics.held_out_blocks import Fall, fall, held_out_blocks
from veridyn.model.coordinates import Rows
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion
from veridyn.progress import Progress, silent

PRICE_LIMIT = 2.0  # of the worst combination's variance: that of half of the data
STANDARD_ERRORS = 2.0  # of a fall: by chance it is as large once in 44


@dataclass(frozen=True, kw_only=True)
class FrictionRival:
    """One model: its parameters, cond ρ, held-out error; and, beside the model chosen before it, the fall of that and its price."""

    name: str
    parameters: int
    condition: float
    error_percent: float
    against: str = ""
    fall: Fall | None = None
    price: float = 1.0
    borne: bool = True
    predicts: bool = False

    @property
    def verdict(self) -> str:
        """What became of it, in words."""
        if not self.against:
            return "the first"
        better = f"predicts better than {self.against}" if self.predicts else f"predicts no better than {self.against}"
        return f"{better}{'' if self.borne else ', but the motion does not bear it'}"

    def summary(self) -> str:
        change = ""
        if self.fall is not None:
            falls = f"{100.0 * self.fall.share:.3g} ± {100.0 * self.fall.sigma:.2g} %"
            change = f", its square falls by {falls}, price {self.price:.3g}"
        return (
            f"{self.name}: {self.parameters} parameters, cond ρ {self.condition:.4g}, "
            f"held-out error {self.error_percent:.4g} %{change}; {self.verdict}"
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class FrictionChoice:
    """All rivals, from the smallest to the largest, and the `chosen` one with its `machine`, which is to be identified."""

    rivals: tuple[FrictionRival, ...]
    chosen: str
    machine: Machine
    price_limit: float

    @property
    def figures(self) -> dict[str, float]:
        """Number of the chosen model among the rivals, and of each cond ρ, price and fall, by its number."""
        names = [one.name for one in self.rivals]
        out = {"friction_rivals": float(len(names)), "friction_chosen": float(names.index(self.chosen))}
        for k, one in enumerate(self.rivals):
            out |= {f"friction_condition_{k}": one.condition, f"friction_price_{k}": one.price}
            if one.fall is not None:
                out |= {f"friction_fall_{k}": one.fall.share, f"friction_fall_sigma_{k}": one.fall.sigma}
        return out

    def summary(self) -> str:
        head = f"chosen: {self.chosen}; a price of {self.price_limit:g} is borne"
        return "\n".join([head, *(f"  {one.summary()}" for one in self.rivals)])


@checked
def friction_rivals(
    rivals: Mapping[str, Machine],
    motion: Motion | Sequence[Motion],
    *,
    rows: Rows = "all",
    settings: IdentifySettings | None = None,
    blocks: int = BLOCKS,
    price_limit: float = PRICE_LIMIT,
    standard_errors: float = STANDARD_ERRORS,
    progress: Progress = silent,
) -> FrictionChoice:
    """Choose between models of friction by how well a motion separates their parameters, and by errors on held-out blocks.

    Parameters
    ----------
    rivals
        Name → machine with that friction, estimated or tied. The one with the fewest parameters is the first.
    motion
        Motions with measured forces; those that are to judge the result are not among them.
    rows, settings
        Equations and how samples become them, as for :func:`identify`; of the settings sampling and engine are used.
    blocks
        Into how many blocks the samples are cut; see :func:`friction_ladder`.
    price_limit
        The price that is borne; infinite where prediction alone matters, and no parameter by itself.
    standard_errors
        A rival is chosen where the held-out error falls by more than so many of its standard errors.

    Returns
    -------
    FrictionChoice
        The evidence, and the machine that was chosen.

    Raises
    ------
    DataError
        Fewer than two rivals.
    IdentificationError
        Parameters that a part of the motion alone excites, so that it cannot be held out.
    """
    if len(rivals) < 2:
        raise DataError("there is nothing to choose.", where="friction_rivals", expected="two models or more")
    how, tried = settings or IdentifySettings(), []
    weights: Array | None = None
    for k, (name, machine) in enumerate(rivals.items()):
        progress("rival models of friction", float(k), float(len(rivals)))
        prepared = prepared_motions(machine, motion)
        motions = [prepared] if isinstance(prepared, Motion) else list(prepared)
        found = solve(observation(machine, motions, rows, how))
        weights = found.row_sigma if weights is None else weights  # the same for all: squares are to be compared
        held = held_out_blocks(machine, motions, rows, how, weights, blocks=blocks, folds=FOLDS)
        squares = held.squares(found.columns)
        if squares is None:
            what = "some parameters are excited in one part of the motion alone, so that part cannot be held out."
            raise IdentificationError(what, where=f"friction_rivals, {name}", hint="Give motions that excite them all.")
        percent = 100.0 * float(np.sqrt(squares.sum() / held.measured))
        tried.append((name, len(found.columns), condition(found), percent, squares))
    progress("rival models of friction", float(len(rivals)), float(len(rivals)))
    tried.sort(key=lambda one: one[1])
    listed, best = [], 0
    for k, (name, count, cond, percent, squares) in enumerate(tried):
        one = FrictionRival(name=name, parameters=count, condition=cond, error_percent=percent)
        if k:
            change = fall(tried[best][4], squares)
            price = cond / tried[best][2] * (1.0 - change.share)
            predicts, borne = change.exceeds(standard_errors), price <= price_limit
            one = replace(one, against=tried[best][0], fall=change, price=price, borne=borne, predicts=predicts)
            best = k if predicts and borne else best
        listed.append(one)
    chosen = tried[best][0]
    return FrictionChoice(rivals=tuple(listed), chosen=chosen, machine=rivals[chosen], price_limit=price_limit)


def condition(found: Solution) -> float:
    """cond ρ of a fit (11)."""
    inverse = np.linalg.inv(found.triangle / np.linalg.norm(found.triangle, axis=0))  # ρ does not depend on scale
    return float(np.linalg.cond(correlation(inverse @ inverse.T)))
