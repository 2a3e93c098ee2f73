"""Drive gains: the force per current of a motor, which is not identifiable on a machine of which nothing is known.

A gain stands on the same side as the parameters, so a machine whose every parameter and gain is twice as large moves alike under the
same currents. Something known must carry the scale: a payload of known inertia, a wrench that is measured, a body that is known.
Where nothing is, gains are refused by name; where something is but it does not affect a gain, it comes out as zero within its deviation
and is refused too. Currents are noisy, and they are columns: least squares makes gains too small, the more so the less of the current
the known load explains. How much too small they can be follows from the fit itself, and where that is less than their deviations,
no warning is given.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from veridyn.arrays import Array
from veridyn.errors import Fault, Faults, IdentificationError, IdentificationWarning, warn
from veridyn.identify.regression.factor import RowFactors
from veridyn.identify.result import Fit
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion

MIN_GAIN_SIGMAS = 3.0  # deviations from zero that a gain must have to be one

LOAD = (
    "Drive gains need a load that is known: carry a payload of known inertia (veridyn.identify.payload), measure a wrench, "
    "or mark bodies as known."
)


def gain_names(machine: Machine) -> list[str]:
    """The drive gains of a tree."""
    return [e.parameter_name for e in machine.elements if e.kind == "drive_gain"]


def estimated_gains(machine: Machine) -> list[str]:
    """The drive gains of a tree that are estimated."""
    p = machine.parameters
    return [name for name in gain_names(machine) if p.states[p.index(name)] == "estimated"]


def with_known_gains(machine: Machine, motions: Sequence[Motion], phi: Array) -> Machine:
    """The tree with estimated gains known at their values in `phi` where they give the only force of motors: what such a gain makes of its
    signal is then the measured force that a prediction is held against. One beside a measured force, or on a passive joint, stays a column.
    """
    gains = [e for e in machine.elements if e.kind == "drive_gain" and e.parameter_name in estimated_gains(machine)]
    alone = [e for e in gains if all(_unmeasured_motor(machine, c, motions) for c in e.on)]
    if not alone:
        return machine
    p = machine.parameters
    values = {e.parameter_name: float(phi[p.index(e.parameter_name)]) for e in alone}
    return machine.with_parameters(p.known(values))


def _unmeasured_motor(machine: Machine, coordinate: str, motions: Sequence[Motion]) -> bool:
    """Whether a motor acts on this coordinate whose force no motion has."""
    if coordinate not in machine.coordinates:
        return False
    k = machine.coordinates.index(coordinate)
    return bool(machine.actuated[k]) and all(m.forces is None or np.isnan(m.forces[:, k]).all() for m in motions)


def check_load(machine: Machine, observed: RowFactors) -> None:
    """Refuse gains by name where nothing on the measured side fixes their size."""
    names = estimated_gains(machine)
    if not names or any(f.measurement_norm > 0.0 for f in observed.rows):
        return
    raise IdentificationError(
        "the measured side is zero everywhere, so gains and parameters all zero fit perfectly and nothing fixes their size.",
        where=f"drive gain{'s' if len(names) > 1 else ''} {', '.join(names)}",
        hint=LOAD,
        source=machine.name,
    )


def check_gains(fit: Fit, instruments: bool) -> None:
    """Refuse gains by name that cannot be distinguished from zero: what is known does not act on them.

    Warn where noise of the currents biases them; `instruments`: the method is one that this noise does not bias.
    """
    faults = Faults()
    p = fit.described.parameters
    found = {p.names[c]: k for k, c in enumerate(fit.base.columns)}
    silent = {p.names[c] for c in fit.base.dead}  # signals that are zero throughout, which a note of the fit names
    names = [name for name in estimated_gains(fit.described) if name not in silent]
    for name in names:
        k = found.get(name)
        if k is None:
            faults.add("it cannot be separated from other parameters.", where=f"drive gain {name}", hint=LOAD)
        elif np.isfinite(fit.sigma[k]) and abs(fit.values[k]) < MIN_GAIN_SIGMAS * fit.sigma[k]:
            faults.add(
                "it cannot be distinguished from zero: what is known hardly acts on its joint.",
                where=f"drive gain {name}",
                expected=f"more than {MIN_GAIN_SIGMAS:g} deviations",
                found=f"{fit.values[k]:.4g} ± {fit.sigma[k]:.2g} {p.units[p.index(name)]}",
                hint=LOAD,
            )
    faults.raise_if_any(IdentificationError, fit.described.name)
    if not names or instruments:
        return
    at = [found[name] for name in names]
    lost, sigma = attenuation(fit, names), fit.sigma[at]
    biased = {name: x / abs(v) for name, x, s, v in zip(names, lost, sigma, fit.values[at], strict=True) if not x <= s}
    if biased:
        warn(
            IdentificationWarning,
            Fault(
                "the currents that they multiply are columns, and noise in columns makes estimates of this kind too small.",
                where=f"drive gains {', '.join(biased)}",
                expected="less of that than their deviations",
                found=f"up to {', '.join(f'{100 * x:.2g}' for x in biased.values())} %, if all that is left over is noise of the currents",
                hint="Use the method Instrumental(reference='measured').",
            ),
        )


def attenuation(fit: Fit, names: Sequence[str]) -> Array:
    """By how much noise of currents makes each of these gains too small at most, to first order.

    Noise of deviation s in the column of a gain K in row r takes C N_r s²/σ_r² K off the estimates, C their covariance, N_r the equations
    of the row and σ_r what is left over in it. At most all of that is the noise, K s = σ_r, so that it takes off C_jr N_r/K_r at most.
    """
    p = fit.described.parameters
    at = [fit.base.columns.index(p.index(name)) for name in names]
    samples = {r.row: r.samples for r in fit.rows}
    on = {e.parameter_name: e.on for e in fit.described.elements}
    equations = np.array([sum(samples.get(c, 0) for c in on[name]) for name in names], dtype=np.float64)
    return np.abs(fit.column_covariance[np.ix_(at, at)] @ (equations / fit.values[at]))
