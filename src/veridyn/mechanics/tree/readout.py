"""The sensors of a tree made ready: readings y = h(q, q̇, q̈) and their exact derivatives, from one graph compiled once.

The surface is that of :class:`veridyn.mechanics.natural.channels.Readout`, which reads mechanisms in natural coordinates.
Configurations, rates and accelerations are those of :mod:`veridyn.mechanics.tree.recursion.sensing`. Readings do not depend on inertial
parameters.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from veridyn.arrays import Array
from veridyn.errors import DataError, ModelError
from veridyn.mechanics.tree.dynamics.engine import (
    Buffer,
    Compiled,
    Engine,
    check_angles,
    check_engine,
    compiled,
    wants_compiled,
)
from veridyn.mechanics.tree.dynamics.formula import Formula, formula
from veridyn.mechanics.tree.recursion.inputs import Request, blocks
from veridyn.mechanics.tree.recursion.sensing import Output, moving, outputs_of, reading, sizes
from veridyn.mechanics.tree.tree import Tree
from veridyn.model.sensor import Sensor, check_sensors
from veridyn.spatial.algebra import ARRAYS
from veridyn.symbolic.expression import evaluate
from veridyn.symbolic.kernel import Single, padded

MOVE = ("rate", "velocity", "gyroscope", "accelerometer")  # kinds whose readings depend on rates


@dataclass(frozen=True, eq=False)
class SensorOutputs:
    """What sensors read: `names` (m,) and `units` of the outputs, the `sensors`, and `owner` (m,), the number of each output's sensor."""

    names: tuple[str, ...]
    units: tuple[str, ...]
    sensors: tuple[Sensor, ...]
    owner: tuple[int, ...]

    @cached_property
    def bias(self) -> Array:
        """What is known of each output's bias (m,)."""
        return np.array([self.sensors[k].bias for k in self.owner])

    @property
    def variances(self) -> Array:
        """Of each output (m,): noise and quantum."""
        return np.array([self.sensors[k].variance for k in self.owner])


@dataclass(frozen=True, eq=False, kw_only=True)
class TreeReadout(SensorOutputs):
    """All sensors of a tree.

    `outputs` (m,) are the same as numbers. `engine` "numpy" is the reference: the recursion on arrays for readings, the graph evaluated
    node by node for derivatives; the others compile for single samples, and for many where that pays.
    """

    tree: Tree
    outputs: tuple[Output, ...]
    engine: Engine

    def __reduce__(self) -> tuple[object, ...]:
        return tree_readout, (self.tree, self.sensors, self.engine)

    @cached_property
    def nq(self) -> int:
        """How many numbers a configuration has."""
        return sizes(self.tree)[0]

    @cached_property
    def nv(self) -> int:
        """How many rates there are, and tangent coordinates of a configuration."""
        return sizes(self.tree)[1]

    @cached_property
    def moves(self) -> bool:
        """Whether any output depends on rates."""
        return any(s.kind in MOVE for s in self.outputs)

    @cached_property
    def accelerates(self) -> bool:
        """Whether any output depends on accelerations."""
        return any(s.kind == "accelerometer" for s in self.outputs)

    def read(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike) -> Array:
        """What ideal sensors read (…, m), bias included, from q (…, nq), q̇ and q̈ (…, nv).

        Examples
        --------
        >>> from veridyn import Body, Marker, Sensor, Tree
        >>> gyro = Sensor("gyro", "gyroscope", Marker("arm", (0.0, 0.0, 0.0)), 0.01, axes="z")
        >>> tree_readout(Tree.build([Body("arm")], sensors=[gyro])).read([0.1], [2.0], [0.0])
        array([2.])
        """
        return self._evaluated(self._readings, q, qd, qdd, 1)[..., 0] + self.bias

    def derivatives(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike) -> tuple[Array, Array, Array]:
        """∂h/∂q in the tangent of the configuration, ∂h/∂q̇ and ∂h/∂q̈: (…, m, nv) each."""
        n = self.nv
        found = self._evaluated(self._slopes, q, qd, qdd, 1 + 3 * n)
        return found[..., 1 : n + 1], found[..., n + 1 : 2 * n + 1], found[..., 2 * n + 1 :]

    @property
    def compiled(self) -> Compiled:
        """The kernel of readings without bias and of their derivatives, for one sample a call.

        Inputs are named q.k, qd.k and qdd.k, see :attr:`take`. Labels: (output, 0) is the reading, (output, 1 + k) its derivative by
        tangent coordinate k of q, (output, 1 + nv + k) by q̇_k and (output, 1 + 2 nv + k) by q̈_k; what is not labelled is zero.
        """
        return compiled(self.tree, self._slopes, single=True)

    @cached_property
    def take(self) -> NDArray[np.intp]:
        """For each input of :attr:`compiled`, its place in (q, q̇, q̈) laid end to end."""
        return self._places(self.compiled.kernel.inputs)

    @cached_property
    def _readings(self) -> Request:
        return Request("readings", columns=self.outputs)

    @cached_property
    def _slopes(self) -> Request:
        return Request("reading_derivatives", columns=self.outputs)

    def _places(self, names: Sequence[str]) -> NDArray[np.intp]:
        start = {"q": 0, "qd": self.nq, "qdd": self.nq + self.nv}
        parts = [name.split(".") for name in names]
        return np.array([start[symbol] + int(k) for symbol, k in parts], dtype=np.intp)

    def _evaluated(self, request: Request, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, width: int) -> Array:
        """(…, m, width), by the way that the engine and the number of samples call for."""
        given = [np.asarray(x, dtype=np.float64) for x in (q, qd, qdd)]
        self._check(given)
        outer = given[0].shape[:-1]
        together = np.concatenate(given, axis=-1)
        if not self.outputs:
            return np.zeros((*outer, 0, width))
        if self.engine != "numpy" and not outer:
            return self._single(request, together, width)
        flat = together.reshape(-1, together.shape[-1])
        out = np.zeros((len(flat), len(self.outputs), width))
        if wants_compiled(self.engine, self.tree, request, len(flat)):
            self._by_kernel(request, flat, out)
        elif width == 1:
            self._by_recursion(flat, out)
        else:
            self._by_graph(flat, out)
        return out.reshape(*outer, len(self.outputs), width)

    def _check(self, given: Sequence[Array]) -> None:
        sizes = (self.nq, self.nv, self.nv)
        for name, x, size in zip(("q", "qd", "qdd"), given, sizes, strict=True):
            if not x.ndim or x.shape != (*given[0].shape[:-1], size):
                raise DataError(
                    "wrong shape of a state.",
                    where=f"{self.tree.name}, {name}",
                    expected=f"(…, {size}), as many samples of each",
                    found=f"{x.shape}",
                    hint="A free base comes first: p and e of q, V and ω of qd, V̇ and ω̇ of qdd."
                    if size != self.tree.n
                    else "",
                )

    @cached_property
    def _local(self) -> threading.local:
        return threading.local()

    def _single(self, request: Request, together: Array, width: int) -> Array:
        """One sample, by this thread's own buffers."""
        made = getattr(self._local, request.quantity, None)
        if made is None:
            of = compiled(self.tree, request, single=True)
            places = tuple(np.array(of.labels, dtype=np.intp).reshape(-1, 2).T)
            made = (Single(of.kernel, np.zeros(0)), self._places(of.kernel.inputs), places)
            setattr(self._local, request.quantity, made)
        single, take, places = made
        check_angles(self.tree, together[self.nq - self.tree.n : self.nq])
        single.inputs[: len(take)] = together[take]
        single.call()
        out = np.zeros((len(self.outputs), width))
        out[places] = single.outputs[: len(places[0])]
        return out

    def _by_kernel(self, request: Request, flat: Array, out: Array) -> None:
        made = compiled(self.tree, request)
        check_angles(self.tree, flat[:, self.nq - self.tree.n : self.nq])
        room = padded(len(flat))
        memory = Buffer().take(len(made.labels) * room, made).reshape(-1, room)
        columns = [flat[:, k] for k in self._places(made.kernel.inputs)]
        addresses = memory.ctypes.data + 8 * room * np.arange(len(made.labels), dtype=np.uintp)
        made.kernel.run(columns, np.zeros(0), addresses, len(flat))
        for (i, k), values in zip(made.labels, memory, strict=True):
            out[:, i, k] = values[: len(flat)]

    def _by_recursion(self, flat: Array, out: Array) -> None:
        nq, nv = self.nq, self.nv
        for block in blocks(len(flat)):
            scalars = list(np.ascontiguousarray(flat[block].T))
            m = moving(self.tree, scalars[:nq], scalars[nq : nq + nv], scalars[nq + nv :], ARRAYS)
            for i, output in enumerate(self.outputs):
                out[block, i, 0] = reading(m, output, ARRAYS)

    def _by_graph(self, flat: Array, out: Array) -> None:
        f = self._formula
        for block in blocks(len(flat)):
            given = dict(zip(f.samples, (flat[block, k] for k in self._places(f.samples)), strict=True))
            for (i, k), value in zip(f.labels, evaluate(f.graph, f.outputs, given), strict=True):
                out[block, i, k] = value

    @cached_property
    def _formula(self) -> Formula:
        return formula(self.tree, self._slopes)


def tree_readout(tree: Tree, sensors: Sequence[Sensor] | None = None, engine: Engine = "auto") -> TreeReadout:
    """The sensors of a tree, open or closed, fixed or free, made ready to read.

    Parameters
    ----------
    tree
        A closed one is read in all its coordinates; that the loops are closed is the caller's.
    sensors
        What to read; by default ``tree.sensors``. Sensors that the tree cannot have are refused by name.
    engine
        "numpy" for the reference; "auto" and "compiled" compile kernels of single samples, "compiled" those of many samples too.

    Returns
    -------
    TreeReadout
        With `read`, `derivatives` and the compiled kernel.
    """
    check_engine(engine)
    chosen = tuple(tree.sensors if sensors is None else sensors)
    kinds = dict(zip(tree.coordinates, tree.coordinate_kinds, strict=True))
    faults = check_sensors(chosen, [b.name for b in tree.bodies], kinds)
    if faults:
        raise ModelError(faults, tree.name)
    outputs = [outputs_of(tree, s) for s in chosen]
    owner = [k for k, of in enumerate(outputs) for _ in of]
    return TreeReadout(
        tree=tree,
        names=tuple(name for s in chosen for name in s.channels(3)),
        units=tuple(chosen[k].unit(kinds.get(str(chosen[k].on)) == "turning") for k in owner),
        sensors=chosen,
        owner=tuple(owner),
        outputs=tuple(o for of in outputs for o in of),
        engine=engine,
    )
