"""Drive gains: what a motor's current is worth, which no motion of an unknown machine can tell.

A gain stands on the same side as the parameters, so a machine whose every parameter and gain is twice as large moves alike under the
same currents. Something known must carry the scale: a payload of known inertia, a wrench that is measured, a body that is known.
Where nothing is, gains are refused by name; where something is but a gain does not feel it, it comes out as zero within its deviation
and is refused too. Currents are noisy, and they are columns: least squares makes gains too small, the more so the less of the current
the known load explains.
"""

from __future__ import annotations

import numpy as np

from veridyn.errors import Fault, Faults, IdentificationError, IdentificationWarning, warn
from veridyn.identify.observation import Observation
from veridyn.identify.result import Fit
from veridyn.model.tree import Tree

LEAST = 3.0  # deviations from zero that a gain must have to be one

LOAD = (
    "Drive gains need a load that is known: carry a payload of known inertia (veridyn.identify.payload), measure a wrench, "
    "or mark bodies as known."
)


def asked_gains(tree: Tree) -> list[str]:
    """The drive gains of a tree that are asked."""
    p = tree.parameters
    names = [e.parameter_name for e in tree.elements if e.kind == "drive_gain"]
    return [name for name in names if p.states[p.index(name)] == "asked"]


def check_load(tree: Tree, observed: Observation) -> None:
    """Refuse gains by name where nothing on the measured side fixes their size."""
    names = asked_gains(tree)
    if not names or any(f.measurement_norm > 0.0 for f in observed.rows):
        return
    faults = Faults()
    faults.add(
        "the measured side is zero everywhere, so gains and parameters all zero fit perfectly and nothing fixes their size.",
        where=f"drive gain{'s' if len(names) > 1 else ''} {', '.join(names)}",
        hint=LOAD,
    )
    faults.raise_if_any(IdentificationError, tree.name)


def check_gains(fit: Fit, estimator: str) -> None:
    """Refuse gains by name that cannot be told from zero: they do not feel what is known. Warn where noise of currents biases them."""
    faults = Faults()
    p = fit.tree.parameters
    found = {p.names[c]: k for k, c in enumerate(fit.base.columns)}
    names = asked_gains(fit.tree)
    for name in names:
        k = found.get(name)
        if k is None:
            faults.add("it cannot be separated from other parameters.", where=f"drive gain {name}", hint=LOAD)
        elif np.isfinite(fit.sigma[k]) and abs(fit.values[k]) < LEAST * fit.sigma[k]:
            faults.add(
                "it cannot be told from zero: what is known hardly acts on its joint.",
                where=f"drive gain {name}",
                expected=f"more than {LEAST:g} deviations",
                found=f"{fit.values[k]:.4g} ± {fit.sigma[k]:.2g} {p.units[p.index(name)]}",
                hint=LOAD,
            )
    faults.raise_if_any(IdentificationError, fit.tree.name)
    if names and estimator != "iv":
        warn(
            IdentificationWarning,
            Fault(
                "the currents that they multiply are columns, and noise in columns makes estimates of this kind too small.",
                where=f"drive gains {', '.join(names)}",
                hint="Use estimator='iv', settings=Instrumental(reference='measured').",
            ),
        )
