"""Machines whose motion under controllers is known in closed form: masses on straight rails."""

from __future__ import annotations

import numpy as np

from veridyn.model.controller import Controller
from veridyn.model.graph import Body
from veridyn.model.machine import Machine
from veridyn.spatial.inertia import from_centre
from veridyn.spatial.rotations import Placement

MASS, HEAVIER = 2.0, 5.0  # kg, of the cart on the second rail and of both together


def point_mass(kg):
    return from_centre(kg, (0.0, 0.0, 0.0), 1e-3 * np.eye(3))


def cart(*controllers, elements=(), **more):
    """One mass on a vertical rail without gravity: q̈ = Γ/MASS."""
    bodies = [Body("cart", joint="sliding", coordinate="z")]
    machine = Machine.of_bodies(
        bodies, inertia={"cart": point_mass(MASS)}, elements=elements, gravity=[0.0] * 3, **more
    )
    return machine.with_controllers(controllers)


def gantry(*controllers):
    """Two rails at right angles, without gravity: z̈ = Γ_z/HEAVIER, ẍ = Γ_x/MASS."""
    across = Placement(np.array([[0.0, 0.0, 1.0], [0.0, 1.0, 0.0], [-1.0, 0.0, 0.0]]))
    bodies = [
        Body("bridge", joint="sliding", coordinate="z"),
        Body("cart", "bridge", "sliding", across, coordinate="x"),
    ]
    inertia = {"bridge": point_mass(HEAVIER - MASS), "cart": point_mass(MASS)}
    return Machine.of_bodies(bodies, inertia=inertia, gravity=[0.0] * 3).with_controllers(controllers)


def servo(kind="pd", on="z", rate=100.0, name="servo", **given):
    words = {k: given.pop(k) for k in ("feedforward", "anti_windup", "motor", "current_rate", "sigma") if k in given}
    return Controller(name=name, kind=kind, on=on, rate=rate, constants=given, **words)


class Wave:
    """A command of `n` equal columns, r = a sin(w t) + b."""

    def __init__(self, n=1, a=0.3, w=4.0, b=0.2):
        self.n, self.a, self.w, self.b = n, a, w, b

    def at(self, t, /):
        s, c = (f(self.w * np.asarray(t, dtype=float))[..., None] * np.ones(self.n) for f in (np.sin, np.cos))
        return self.a * s + self.b, self.a * self.w * c, -self.a * self.w**2 * s


class Step:
    """A command that is 1 from the start."""

    def __init__(self, n=1):
        self.n = n

    def at(self, t, /):
        one = np.ones((*np.shape(t), self.n))
        return one, 0.0 * one, 0.0 * one
