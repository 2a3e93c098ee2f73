"""One state a call: inverse and forward dynamics, regressor and mass matrix of an open machine, for controllers and other loops in Python.

    evaluator = vd.dynamics.Evaluator(machine);   tau = evaluator.inverse_dynamics(q, qd, qdd)

The functions of :mod:`veridyn.mechanics.tree.dynamics.inverse` and its neighbours check and lay out whole motions, which for one state
costs a hundred times the arithmetic. Here memory is laid out once; a call copies the state, runs the kernel, and gives the array it wrote
into.
"""

from __future__ import annotations

from functools import cache, cached_property
from typing import Any

import numpy as np
from numba import types
from numpy.typing import ArrayLike, NDArray

from veridyn.arguments import checked
from veridyn.arrays import Array
from veridyn.errors import DataError
from veridyn.mechanics.compiled import kept, only_for
from veridyn.mechanics.tree.dynamics.engine import LARGEST_ANGLE_RAD, compiled, uniform_values
from veridyn.mechanics.tree.dynamics.forward import NEAR_SINGULAR, check_mass
from veridyn.mechanics.tree.of_machine import tree_of
from veridyn.mechanics.tree.recursion.inputs import Request, complete_values
from veridyn.mechanics.tree.steps.record import addresses_in, call_addresses, call_kernel
from veridyn.mechanics.tree.tree import Tree
from veridyn.model.machine import Machine

Numbers = NDArray[np.int64]
BASE = ("w", "wd", "vd", "v")  # of a free base: turning rate, its derivative, specific acceleration, velocity


@kept
def evaluate(I: Numbers, W: Array, q: Array, qd: Array, third: Array, largest: float) -> int:
    """Copy a state into W and run the kernel whose addresses stand in I; −1 where a length is wrong, −2 − k where entry k is not usable."""
    n = len(q)
    if I[6] != n or len(qd) != n or len(third) != n:
        return -1
    for k in range(n):
        if not (abs(q[k]) < largest and abs(qd[k]) < np.inf and abs(third[k]) < np.inf):
            return -2 - k
        W[k], W[n + k], W[2 * n + k] = q[k], qd[k], third[k]
    call_kernel(I, 0)
    return 0


@cache
def _evaluate() -> Any:
    """:func:`evaluate` for arrays of doubles in one piece, and for nothing else: others are converted, not compiled for."""
    vector = types.Array(types.float64, 1, "C")
    return only_for(evaluate, (types.Array(types.int64, 1, "C"), vector, vector, vector, vector, types.float64))


class _Bound:
    """A kernel bound to the evaluator's memory and to the array it writes into."""

    def __init__(self, evaluator: Evaluator, request: Request, third: str, shape: tuple[int, ...]) -> None:
        tree = evaluator.tree
        made = compiled(tree, request, single=True)
        self.out = np.zeros(shape)
        n, W = tree.n, evaluator.memory
        place = {f"{s}.{k}": n * i + k for i, s in enumerate(("q", "qd", third)) for k in range(n)}
        place |= {f"{s}.{k}": 3 * n + 3 * i + k for i, s in enumerate(BASE) for k in range(3)}
        place |= {f"s.{name}": 3 * n + 12 + k for k, name in enumerate(tree.signals)}
        inputs = addresses_in(W, (place[name] for name in made.kernel.inputs))
        self.check = np.zeros(1)  # the sum of inverse pivots of forward dynamics
        flat = [self._address(label) for label in made.labels]
        self._parameters = np.ascontiguousarray(uniform_values(tree, evaluator.values, made.kernel.parameters))
        addresses, self._held = call_addresses(
            made.kernel, inputs, np.array([*flat, 0], dtype=np.uintp), self._parameters.ctypes.data
        )
        self.I = np.array([*addresses, n], dtype=np.int64)
        self.W = W

    def _address(self, label: tuple[int, ...]) -> int:
        if label[0] >= len(self.out):
            return self.check.ctypes.data
        return self.out.ctypes.data + 8 * int(np.ravel_multi_index(label, self.out.shape))


class Evaluator:
    """One state a call, in memory laid out once. Every method gives an array that its next call overwrites; copy what must last.

    Parameters
    ----------
    machine : Machine
        An open machine on a fixed or a free base, with a value for every parameter.
    parameters : array (p,), optional
        Values in the order of ``machine.parameters.names``; the machine's own by default.
    friction_speed : float
        Speed in rad/s or m/s below which dry friction is rounded off; 0, the default, is exact.

    Attributes
    ----------
    omega, omega_dot, acceleration, velocity : array (3,)
        The motion of a free base in its own frame, as :class:`~veridyn.model.motion.BaseMotion` has it; write into them before a call.
    signals : dict of array (1,)
        Measured quantities that elements depend on, by name; write into them before a call.

    Examples
    --------
    >>> import numpy as np
    >>> import veridyn as vd
    >>> inertia = vd.spatial.from_centre(2.0, [0.5, 0.0, 0.0], np.diag([0.01, 0.1, 0.1]))  # ZZ = 0.6 kg*m^2, MX = 1 kg*m
    >>> rod, hinge = vd.Link(name="rod", inertia=inertia), vd.Joint(name="hinge", a="ground", b="rod", actuated=True)
    >>> pendulum = vd.Machine.build([rod], [hinge], dimension=2)  # moves in the x-y plane, gravity along −y
    >>> one = vd.dynamics.Evaluator(pendulum)
    >>> one.inverse_dynamics(np.array([0.0]), np.array([0.0]), np.array([1.0])).round(2)
    array([10.41])
    """

    @checked
    def __init__(
        self, machine: Machine | Tree, parameters: ArrayLike | None = None, *, friction_speed: float = 0.0
    ) -> None:
        self.tree = tree = tree_of(machine)
        tree.check_open("an evaluator of one state")
        for what, named in (("tyres", tree.wheels), ("prescribed coordinates", tree.prescribed)):
            if named:
                hint = "Use inverse_dynamics and forward_dynamics, which take whole motions."
                raise DataError(f"an evaluator of one state has no {what}.", where=tree.name, hint=hint)
        self.values = complete_values(tree, None if parameters is None else np.asarray(parameters, dtype=np.float64))
        self.friction_speed = float(friction_speed)
        n = tree.n
        self.memory = np.zeros(3 * n + 12 + len(tree.signals))
        self.omega, self.omega_dot, self.acceleration, self.velocity = self.memory[3 * n : 3 * n + 12].reshape(4, 3)
        self.signals = {name: self.memory[3 * n + 12 + k :][:1] for k, name in enumerate(tree.signals)}
        self._still, self._evaluate = np.zeros(n), _evaluate()

    def inverse_dynamics(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike) -> Array:
        """Γ (rows,): forces of one state, of a free base its six rows first. q, qd, qdd (n,)."""
        return self._called(self._inverse, q, qd, qdd)

    @property
    def inverse_call(self) -> tuple[Numbers, Array, Array]:
        """For compiled code: the addresses of inverse dynamics at ``[0]`` of the first array, what it reads (q, q̇, q̈ …), and Γ."""
        bound = self._inverse
        return bound.I, self.memory, bound.out

    def forward_dynamics(self, q: ArrayLike, qd: ArrayLike, forces: ArrayLike) -> Array:
        """Accelerations (rows,) under forces (n,) on the coordinates; of a free base v̇ − g and ω̇ first."""
        out = self._called(self._forward, q, qd, forces)
        if not self._forward.check[0] < NEAR_SINGULAR:
            check_mass(self.tree, self.mass_matrix(q)[None])
        return out

    def regressor(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike) -> Array:
        """D (rows, p) with Γ = D φ, columns in the order of the machine's parameters."""
        return self._called(self._regressor, q, qd, qdd)

    def mass_matrix(self, q: ArrayLike) -> Array:
        """M (rows, rows)."""
        return self._called(self._mass, q, self._still, self._still)

    @cached_property
    def _inverse(self) -> _Bound:
        return self._bound("inverse", "qdd")

    @cached_property
    def _forward(self) -> _Bound:
        return self._bound("forward_checked", "t")

    @cached_property
    def _regressor(self) -> _Bound:
        columns = tuple(range(len(self.tree.parameters)))
        return self._bound("regressor", "qdd", columns, (len(columns),))

    @cached_property
    def _mass(self) -> _Bound:
        request = Request("mass")
        return _Bound(self, request, "qdd", (len(self.tree.rows), len(self.tree.rows)))

    def _bound(self, quantity: str, third: str, columns: tuple[int, ...] = (), more: tuple[int, ...] = ()) -> _Bound:
        rows = tuple(range(len(self.tree.rows)))
        return _Bound(
            self, Request(quantity, rows, columns, friction_speed=self.friction_speed), third, (len(rows), *more)
        )

    def _called(self, bound: _Bound, q: Any, qd: Any, third: Any) -> Array:
        try:
            state = self._evaluate(bound.I, bound.W, q, qd, third, LARGEST_ANGLE_RAD)
        except TypeError:  # not arrays of doubles in one piece
            given = [np.ascontiguousarray(x, dtype=np.float64).ravel() for x in (q, qd, third)]
            state = self._evaluate(bound.I, bound.W, *given, LARGEST_ANGLE_RAD)
        if state:
            raise self._refused(state, q, qd, third)
        return bound.out

    def _refused(self, state: int, *given: Any) -> DataError:
        n, shapes = self.tree.n, ", ".join(str(np.shape(x)) for x in given)
        if state == -1:
            return DataError("wrong shape.", where=self.tree.name, expected=f"three arrays ({n},)", found=shapes)
        k = -2 - state
        found = ", ".join(f"{np.asarray(x).ravel()[k]:g}" for x in given)
        return DataError(
            f"the state of coordinate '{self.tree.coordinates[k]}' is not usable.",
            where=self.tree.name,
            expected=f"finite numbers, and positions below {LARGEST_ANGLE_RAD:g}",
            found=found,
        )
