"""A payload as a yardstick, and a payload as the unknown.

A load of known inertia that the machine carries is a wrench it bears: with it on the measured side, drive gains have a scale (Gautier
and Briot, 2014, ASME J. Dyn. Syst. Meas. Control 136(5)). Turned round, a machine that is known, gains included, weighs what it
carries: ten parameters of one body, with everything else known, to within the uncertainty of the fit that it is known from. Errors of
gains and of the empty machine go together (a gain 1 % too large makes both machine and load 1 % too heavy), so their covariance
counts, and not their deviations alone.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from veridyn.arguments import checked
from veridyn.errors import DataError, Fault, ModelError
from veridyn.identify.delivery import uncertainty_of
from veridyn.identify.result import Fit
from veridyn.mechanics.kinematics import body_motion
from veridyn.mechanics.tree.accept import takes_machine
from veridyn.model.assembly import Attachment
from veridyn.model.graph import unique
from veridyn.model.link import Joint, Link
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion
from veridyn.spatial.inertia import broken_law, inertia_matrix
from veridyn.spatial.transforms import MDH, Placement

Array = NDArray[np.float64]


@takes_machine
def carrying(machine: Machine, motion: Motion, body: str, inertia: ArrayLike) -> Motion:
    """The same motion with a rigid load on `body` whose ten parameters, about that body's origin and in its frame, are known.

    The load enters as the wrench that it puts on the body, so it needs no column and no other model: give the runs with it and those
    without as one list of motions.
    """
    x = np.asarray(inertia, dtype=np.float64)
    law = (
        broken_law(x)
        if x.shape == (10,) and np.isfinite(x).all()
        else "it takes ten numbers, XX XY XZ YY YZ ZZ MX MY MZ M"
    )
    if law:
        raise ModelError(
            Fault(f"no load has this inertia: {law}.", where=f"the load on '{body}'", found=f"{x.tolist()}")
        )
    J, s, m = np.array(inertia_matrix(x)), x[6:9], x[9]
    moved = body_motion(machine, motion, body)
    w, wd, a = moved.omega, moved.omega_dot, moved.acceleration
    force = m * a + np.cross(wd, s) + np.cross(w, np.cross(w, s))
    moment = wd @ J.T + np.cross(w, w @ J.T) + np.cross(s, a)
    own = motion.wrenches.get(body, np.zeros((len(motion), 6)))
    return replace(motion, wrenches={**motion.wrenches, body: own - np.hstack([force, moment])})


@checked
def with_payload(
    machine: Fit | Machine, body: str, placement: Placement | MDH | None = None, name: str = "payload"
) -> Machine:
    """A machine that is known, from a fit or with all its values, carrying a body of ten estimated parameters fixed to `body`.

    Identify it on runs with the load: what comes out is the load alone, in the frame of `placement`. The covariance of a fit, with that of
    known drive gains where they have one, or the uncertainty of a machine goes with it, and so into the deviations of the load. It is in
    formulation tree.
    """
    known = machine.described.with_parameters(machine.standard) if isinstance(machine, Fit) else machine
    if missing := known.parameters.missing():
        raise ModelError(
            Fault(
                "the machine must be known to weigh what it carries.",
                where=known.name,
                found=f"no value for {', '.join(missing[:6])}",
                hint="Identify it without the load first, and pass the fit.",
            )
        )
    known.body(body)
    if name in known.by_name:
        raise DataError(Fault(f"there is a body '{name}' already.", where=known.name, hint="Give name=."))
    flange = Attachment(body, placement or MDH())
    fixed = Joint(name=unique(name, known.joint_names, "joint"), kind="fixed", a=flange, b=name, cut="no")
    sure = known.with_parameters(known.parameters.known(known.parameters.names)).formulated("tree")
    loaded = replace(sure.with_body(Link(name=name), fixed), name=f"{known.name} with {name}")
    return loaded.with_uncertainty(uncertainty_of(machine) if isinstance(machine, Fit) else machine.uncertainty)
