"""Parameters that drift while a machine is used: followed with the state, unless the log does not determine them.

    θ̇ = w,  E[w(t) w(s)] = by²/within δ(t − s),    P_θθ(0) = Σ_θθ + by²,    P_θκ(0) = Σ_θκ

Σ is the covariance that the machine has from its fit, with all that θ has in common with the parameters κ that are considered: the log is
taken to begin `within` seconds after the logs of the fit. A parameter is determined where the readings bring its deviation below
`DETERMINED` of what it would be without them,

    P_θθ(t) < DETERMINED² (P_θθ(0) + t by²/within)        at some time of the log

One that is not, such as friction of a joint that stands still, is frozen: no reading corrects it, so that errors of the model are not taken
for its drift, and its uncertainty enters the bands as that of considered parameters does (S. F. Schmidt, 1966).

Beside a running machine there is no log that says so in advance. There all drifting parameters begin frozen, a second filter follows them,
and each is released when that one has determined it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from veridyn.arrays import Array
from veridyn.errors import Faults, ModelError, did_you_mean
from veridyn.mechanics.formulation import Formulated, MachineModel
from veridyn.model.parameters import Drift, Uncertainty
from veridyn.observe.machine import MachineSystem
from veridyn.observe.result import Estimates
from veridyn.observe.settings import ObserveSettings

DETERMINED = 0.5  # of the deviation without readings


@dataclass(frozen=True, eq=False)
class DriftingStates:
    """Drifting parameters by `names`: their `places` among the states, variances `before` any reading, and densities of their walks."""

    names: tuple[str, ...]
    places: NDArray[np.intp]
    before: Array
    density: Array

    def determined(self, P: Array, t: Array) -> tuple[str, ...]:
        """Those whose deviation some reading brought below `DETERMINED` of what it would be without; P (N, n, n) at the times t (N,) since
        the first reading."""
        without = self.before + np.multiply.outer(t, self.density)
        reached = np.any(P[:, self.places, self.places] < DETERMINED**2 * without, axis=0)
        return tuple(self.names[k] for k in np.flatnonzero(reached).tolist())

    def frozen_along(self, estimates: Estimates, frozen: tuple[str, ...]) -> tuple[str, ...]:
        """Those that were frozen in a run, and those that its readings did not determine."""
        determined = self.determined(estimates.P, estimates.t - estimates.t[0])
        return tuple(name for name in self.names if name in frozen or name not in determined)


def followed_drifts(
    marked: Mapping[str, Drift], settings: ObserveSettings, estimated: tuple[str, ...], machine: str
) -> dict[str, Drift]:
    """The drifting parameters that are estimated by default: without those that the settings say how to estimate."""
    chosen, faults = settings.drifts, Faults()
    for name in () if isinstance(chosen, bool) else chosen:
        if name not in marked:
            faults.add(
                f"'{name}' is not marked as drifting.",
                where="ObserveSettings.drifts",
                expected="parameters under drifts in the model file",
                hint=did_you_mean(name, [*marked]),
            )
    faults.raise_if_any(ModelError, machine)
    names = [n for n in marked if chosen is True or (chosen is not False and n in chosen)]
    return {name: marked[name] for name in names if name not in estimated}


def start_covariance(form: Formulated, model: MachineModel, drifts: dict[str, Drift]) -> Uncertainty | None:
    """The covariance at the start of the drifting and the considered parameters together; None where there are no drifting ones."""
    if not drifts:
        return None
    considered = () if model.uncertainty is None else model.uncertainty.names
    names = tuple(name for name in model.varying if name in drifts or name in considered)
    C, known = np.zeros((len(names), len(names))), form.uncertainty
    if known is not None:
        here = [k for k, name in enumerate(names) if name in known.names]
        there = [known.names.index(names[k]) for k in here]
        C[np.ix_(here, here)] = known.covariance[np.ix_(there, there)]
    for k, name in enumerate(names):
        C[k, k] += drifts[name].by ** 2 if name in drifts else 0.0
    return Uncertainty(names, C)


def drifting_states(system: MachineSystem) -> DriftingStates | None:
    """The drifting parameters of a machine of bodies; None where there are none."""
    if system.carried is None:
        return None
    names = tuple(name for name in system.estimated if name in system.carried.names)
    places = np.array([2 * system.f + len(system.model.unknown) + system.varying.index(name) for name in names])
    at = [system.carried.names.index(name) for name in names]
    return DriftingStates(names, places, system.carried.covariance.diagonal()[at], system.density[places])


def with_frozen(system: MachineSystem, estimates: Estimates) -> MachineSystem:
    """The system with those drifting parameters frozen that the readings of a run along a log do not determine; the same where all are."""
    drifting = drifting_states(system)
    if drifting is None:
        return system
    frozen = drifting.frozen_along(estimates, system.frozen)
    return system if len(frozen) == len(system.frozen) else replace(system, frozen=frozen)
