"""The extended Kalman filter: the machine moves as it does, its errors move along the tangent.

    x ← f(x),  P ← F P Fᵀ + Q,  F = ∂f/∂x        y = h(x),  H = ∂h/∂x                    (paper 003, equations 52 and 53)

H is taken at the predicted state. A system whose `move_and_jacobian` returns F of a simpler error model makes this the
error-state filter (54, 57): the predicted error is zero because the model itself has been corrected.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal, Protocol, runtime_checkable

from veridyn.arrays import Array
from veridyn.errors import ModelError
from veridyn.observe.filters.callable_step import callable_step
from veridyn.observe.filters.compiled_step import CompiledStep
from veridyn.observe.filters.filter import Filter
from veridyn.observe.filters.update import Expectation
from veridyn.observe.process_noise import symmetric
from veridyn.observe.result import Belief
from veridyn.observe.system import Callables, System
from veridyn.settings import at_least

Engine = Literal["auto", "compiled", "python"]


@runtime_checkable
class Compilable(Protocol):
    """A system whose extended filter can run as machine code."""

    def compiled_step(self, gate: float | None) -> CompiledStep | None:
        """A step with this gate, for one caller; None where this system has none."""
        ...


@dataclass(frozen=True, repr=False)
class EKF(Filter):
    """The extended Kalman filter; needs F and H.

    `engine`: "compiled" takes whole steps by machine code and refuses a system that has none, "python" is the reference, "auto"
    compiles where the system allows it. The two agree to rounding. `refresh`: by machine code on a tree, or on a vehicle in natural
    coordinates, derivatives are computed anew at every so many steps only, the state itself at every one; larger values save time where
    the machine changes little from step to step.

    Examples
    --------
    >>> import numpy as np
    >>> import veridyn as vd
    >>> inertia = vd.spatial.from_centre(2.0, [0.5, 0.0, 0.0], np.diag([0.01, 0.1, 0.1]))  # ZZ = 0.6 kg*m^2, MX = 1 kg*m
    >>> rod, hinge = vd.Link(name="rod", inertia=inertia), vd.Joint(name="hinge", a="ground", b="rod", actuated=True)
    >>> encoder = vd.Sensor("encoder", "coordinate", "hinge", 1e-3)
    >>> pendulum = vd.Machine.build([rod], [hinge], sensors=[encoder], dimension=2)
    >>> log = vd.simulate(pendulum, vd.manoeuvres.Driven(1.0, 100.0, [0.3], [0.0]), rng=np.random.default_rng(0))
    >>> settings = vd.ObserveSettings(process_noise=vd.ProcessNoise(force=1e-4), start={"hinge": 0.0})
    >>> states = vd.observe(pendulum, log, vd.EKF(gate=0.999), settings)  # refuses one good reading in a thousand
    >>> states.states
    ('hinge', 'hinge_dot', 'force.hinge')
    """

    word: ClassVar[str] = "ekf"

    engine: Engine = "auto"
    refresh: Annotated[int, at_least(1)] = 1

    def compiled_step(self, system: System) -> CompiledStep | None:
        if self.engine == "python":
            return None
        plain = type(self).predict is EKF.predict and type(self).expect is EKF.expect  # others have no machine code
        step = None
        if plain and isinstance(system, Callables):
            step = callable_step(system, self.pass_probability, wholly=self.engine == "compiled")
        elif plain and isinstance(system, Compilable):
            step = system.compiled_step(self.pass_probability)
        if step is None and self.engine == "compiled":
            raise ModelError(
                "there is no compiled step of this filter on this system.",
                where=self.name,
                expected="a system with a compiled_step, such as a mechanism's, or one of compiled functions",
                found=type(system).__name__,
                hint='Use engine="auto" or engine="python".',
            )
        if self.refresh > 1:
            if step is None or not step.keeps_derivatives:
                raise ModelError(
                    "derivatives can be kept over steps by machine code on a tree or a vehicle alone.",
                    where=f"{self.name}, refresh",
                    expected="1, or a machine with formulation: tree, or with tyres, and the compiled engine",
                    found=f"refresh {self.refresh}",
                )
            step.refresh(self.refresh)
        return step

    def predict(self, system: System, belief: Belief, u: Array, t: float, dt: float) -> tuple[Array, Array, Array]:
        x, F = system.move_and_jacobian(belief.x, u, t, dt)
        return x, symmetric(F @ belief.P @ F.T) + system.noise(belief.x, u, t, dt), F

    def expect(self, system: System, x: Array, P: Array, u: Array, t: float) -> Expectation:
        y, H = system.sense_and_jacobian(x, u, t)
        return Expectation(y, H, system.sensor_noise(t))
