"""Compiled kernels of one machine: made once, kept on disk, called on motions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from veridyn.arrays import Array
from veridyn.errors import DataError
from veridyn.mechanics.tree.recursion.inputs import Label, Request
from veridyn.mechanics.tree.tree import Tree
from veridyn.model.elements.element import Element
from veridyn.model.elements.kinds import KINDS
from veridyn.model.load import Drive, Force
from veridyn.model.motion import Motion
from veridyn.model.place import GROUND, Marker
from veridyn.symbolic.cache import Stored, is_remembered, key_of, load_or_make, remembered
from veridyn.symbolic.emit_llvm import BLOCK, emit
from veridyn.symbolic.expression import Count, count
from veridyn.symbolic.kernel import Addresses, Host, Kernel, compile_object, padded, this_host
from veridyn.symbolic.sources import note_sources, source_digest

Engine = Literal["auto", "compiled", "numpy"]
MIN_COMPILED_SAMPLES = (
    20_000  # samples from which compiling, some tenths of a second once, costs less than the reference
)
# what the reference does quickly pays only from so many times as many on
QUICK = {"inverse": 5, "mass": 5, "jacobian": 5, "loops": 2, "loop_motion": 2}
CACHE = 2**20  # bytes beyond which what is written is not read again before it leaves the cache
# of LLVM: with the least, kernels are 20 to 35 % slower and compiled in a tenth of the time
EFFORT, LEAST_EFFORT = 2, 0
LONG_TEXT = 2_000_000  # characters of LLVM's text, which take about 4 s to compile with the usual effort
SPREAD = 8  # doubles between entries beyond full blocks, so that they do not fall on one set of the cache
LARGEST_ANGLE_RAD = 1e6  # rad; the kernels' sine and cosine are exact to a unit in the last place up to here
note_sources(__name__)


@dataclass(frozen=True, eq=False)
class Compiled:
    """A kernel with the meaning of its outputs: labels are (row, column), (row,) … as the request's quantity has it."""

    kernel: Kernel
    labels: tuple[Label, ...]
    count: Count

    def __call__(
        self,
        tree: Tree,
        motion: Motion,
        addresses: Addresses,
        values: Array,
        threads: int = 1,
        far: bool = False,
    ) -> None:
        """Fill outputs, one address for each label, for all samples of a motion; see :meth:`Kernel.run` for the room they need.

        `values` are all parameters of the machine, of which the kernel takes those it uses.
        """
        arrays = sample_arrays(tree, motion, self.kernel.inputs)
        chosen = uniform_values(tree, values, self.kernel.parameters)
        out = np.asarray(addresses, dtype=np.uintp)
        N = len(motion)
        parts = max(1, min(threads, N // (4 * BLOCK)))
        if parts == 1:
            self.kernel.run(arrays, chosen, out, N, far)
            return
        cuts = [N * k // parts // BLOCK * BLOCK for k in range(parts)] + [N]

        def part(k: int) -> None:
            lo, hi = cuts[k], cuts[k + 1]
            self.kernel.run([a[lo:hi] for a in arrays], chosen, out + np.uintp(8 * lo), hi - lo, far)

        with ThreadPoolExecutor(parts) as pool:
            list(pool.map(part, range(parts)))


def wants_compiled(engine: Engine, tree: Tree, request: Request, samples: int) -> bool:
    """Whether to go through machine code: "auto" does where it is there already, or where there is enough to do to pay for it."""
    check_engine(engine)
    if engine != "auto":
        return engine == "compiled"
    return samples >= MIN_COMPILED_SAMPLES * QUICK.get(request.quantity, 1) or is_remembered(
        _key(tree, request, this_host())
    )


def check_engine(engine: str) -> None:
    """Refuse a word that names no engine."""
    if engine not in ("auto", "compiled", "numpy"):
        raise DataError(f"there is no engine '{engine}'.", expected="'auto', 'compiled' or 'numpy'")


def check_angles(tree: Tree, q: Array) -> None:
    """Refuse coordinates that turn a joint beyond the range of the compiled sine and cosine."""
    largest = max(float(q.max(initial=0.0)), -float(q.min(initial=0.0)))  # without a copy, and as a rule enough
    if not largest * tree.largest_turn <= LARGEST_ANGLE_RAD:
        check_farthest(tree, float((np.abs(q) * tree.turns).max(initial=0.0)))


def check_farthest(tree: Tree, farthest: float) -> None:
    """The same for the largest angle of all, in rad."""
    if farthest > LARGEST_ANGLE_RAD:
        raise DataError(
            "an angle is too far from zero for the compiled sine and cosine.",
            where=tree.name,
            expected=f"up to {LARGEST_ANGLE_RAD:g} rad",
            found=f"{farthest:.6g}",
            hint="Take whole turns off the angle, or use engine='numpy'.",
        )


class Buffer:
    """Memory for results that are written again and again. A result is good until the next call with the same buffer.

    Made once and passed as `out`; it grows as needed, and is cleared when another quantity, machine or length comes.
    """

    def __init__(self) -> None:
        self._memory = np.zeros(0)
        self._holds: object = None

    def take(self, size: int, what: object) -> Array:
        """So many numbers on a multiple of 64 bytes: zero, or what was written when the same was computed last."""
        if len(self._memory) < size + 8:
            self._memory = np.zeros(size + 8)
        elif what != self._holds:
            self._memory[:] = 0.0
        self._holds = what
        skip = -self._memory.ctypes.data % 64 // 8
        return self._memory[skip : skip + size]


def filled(
    made: Compiled,
    tree: Tree,
    motion: Motion,
    shape: tuple[int, ...],
    place: Mapping[Label, tuple[int, ...]] | None = None,
    values: Array | None = None,
    threads: int = 1,
    out: Buffer | None = None,
) -> Array:
    """An array (N, *shape) with every output at the place of its label (the label itself by default), zero elsewhere.

    Each entry's samples lie together in memory, which is how they are written and how least squares reads them. `out` is memory to
    write into again: new memory costs more than what is computed.
    """
    N = len(motion)
    room = padded(N) + SPREAD
    places = made.labels if place is None else [place[label] for label in made.labels]
    at = np.asarray(
        np.ravel_multi_index(np.array(places, dtype=np.intp).reshape(-1, len(shape)).T, shape), dtype=np.uintp
    )
    size = int(np.prod(shape)) * room
    whole = (out or Buffer()).take(size, (at.tobytes(), size)).reshape(*shape, room)
    addresses = whole.ctypes.data + 8 * room * at
    given = tree.parameters.values if values is None else values
    made(tree, motion, addresses, given, threads, far=8 * size > CACHE)
    return np.moveaxis(whole[..., :N], -1, 0)


@lru_cache(maxsize=256)
def _key(tree: Tree, request: Request, target: Host, block: int = BLOCK, how: str = "") -> str:
    """The name of a kernel; kept for the last trees used, since a tree never changes and its signature is long."""
    how = f"{block} {how}" if how else f"{block}"
    return key_of(signature(tree), repr(request), target.signature, how, source_digest(__name__) or "")


def compiled(
    tree: Tree,
    request: Request,
    host: Host | None = None,
    single: bool = False,
    few: bool = False,
    lanes: int = 1,
) -> Compiled:
    """The kernel of a request: from memory, from disk, or made now; for blocks of samples, or for a `single` one a call.

    `few`: it is called on few samples, as in a search, so that compiling a long one must not take longer than it saves; nor must that of a
    single one. `lanes` above 1: a call is one of so many samples side by side, each with parameters of its own.
    """
    wide = lanes > 1
    target = this_host(lanes) if single or wide else host or this_host()
    block = lanes if single or wide else BLOCK
    key = _key(tree, request, target, block, "lanes" if wide else "few" if few else "")

    def make() -> Stored:
        from veridyn.mechanics.tree.dynamics.formula import formula  # here: a kernel on disk needs no formula

        f = formula(tree, request)
        program = emit(f.graph, f.outputs, f.samples, f.parameters, target.width, block, lanes=wide)
        counted = count(f.graph, f.outputs)
        description = {
            "labels": [list(f.labels[k]) for k in program.order],
            "samples": list(f.samples),
            "parameters": list(f.parameters),
            "places": program.places,
            "count": [counted.multiplications, counted.additions, counted.divisions, counted.trigonometric],
        }
        effort = LEAST_EFFORT if (single or few) and len(program.text) > LONG_TEXT else EFFORT
        return Stored(compile_object(program.text, target, effort), description)

    def load() -> Compiled:
        stored = load_or_make(key, make) if source_digest(__name__) else make()  # sources were edited: not kept
        d = stored.description
        labels = tuple(tuple(label) for label in d["labels"])
        kernel = Kernel(stored.code, tuple(d["samples"]), tuple(d["parameters"]), len(labels), d["places"], block)
        return Compiled(kernel, labels, Count(*d["count"]))

    return remembered(key, load)


def signature(tree: Tree) -> str:
    """Everything about a tree that its kernels depend on: structure, geometry and gravity, not names nor values of parameters.

    Of the constants of elements' laws, which are given; their values are inputs.
    """
    bodies = [
        (i, s, k, b.ratio, b.real, A, P)
        for i, s, k, b, (A, P) in zip(
            tree.antecedent, tree.sigma, tree.coordinate, tree.bodies, tree.placements, strict=True
        )
    ]
    number = {name: k for k, name in enumerate(tree.coordinates)}
    elements = []
    for e in tree.elements:
        on = e.on_body
        if e.wheel is not None:
            acts = (tree.index(e.wheel.body), e.wheel.at, e.wheel.axis)
        elif e.between is not None:
            acts = tuple((-1 if m.body == GROUND else tree.index(m.body), m.at) for m in e.between)
        elif on is not None:
            acts = (tree.index(on[0]), on[1], *e.on.values())
        else:
            acts = tuple((number[c], a) for c, a in e.on.items())
        folded = [(c.key, None if c.key in e.constants else c.default) for c in KINDS[e.kind].constants]
        named = e.parameter_name if KINDS[e.kind].states else ""  # which names its inputs
        elements.append((e.kind, acts, e.signal, named, *folded, *_own_law(tree, e)))
    held = repr(tree.held) if tree.held else ""
    return (
        repr((tree.base, tuple(float(x) for x in tree.gravity), bodies, elements)) + _cuts(tree) + _pushes(tree) + held
    )


def _own_law(tree: Tree, e: Element) -> tuple[object, ...]:
    """What kernels depend on of a law of one's own: its formula, the numbers of its coordinates, its table."""
    if e.own_law is None:
        return ()
    used = (*e.own_law.coordinates, *e.own_law.speeds)
    table = None if e.table is None else (e.table.at, e.table.values, e.table.shape, e.table.outside)
    return (e.own_law.text, [tree.coordinates.index(name) for name in used], table)


def _cuts(tree: Tree) -> str:
    """The loops of a tree, nothing for an open one."""
    if not tree.loops:
        return ""
    ends = [
        [(end.body, end.placement.rotation.tolist(), end.placement.position.tolist()) for end in (c.first, c.second)]
        for c in tree.loops
    ]
    return repr([(c.joint, c.length, *at) for c, at in zip(tree.loops, ends, strict=True)])


def _pushes(tree: Tree) -> str:
    """The loads of a tree without their names and values, nothing where there are none."""
    if not tree.loads:
        return ""
    place = {b.name: k for k, b in enumerate(tree.bodies)}

    def at(on: object) -> object:
        return (place.get(on.body, -1), on.at) if isinstance(on, Marker) else place.get(str(on), -1)

    found: list[object] = []
    for load in tree.loads:
        if isinstance(load, Drive):
            found.append(("drive", tree.coordinates.index(load.coordinate)))
        elif isinstance(load, Force):
            found.append(("force", at(load.at)))
        else:
            found.append(("torque", at(load.body), at(load.against)))
    return repr(found)


def uniform_values(tree: Tree, values: Array, names: Sequence[str]) -> Array:
    """What kernels take that is the same for all samples: parameters "p.3" from `values`, constants "const.0" from the tree."""
    parameters, constants = _uniform_places(tuple(names))
    found = np.empty(len(names))
    found[parameters[0]] = values[parameters[1]]
    if constants:
        own = tree.constants
        for place, k in constants:
            found[place] = own[k].value
    return found


@lru_cache(maxsize=256)
def _uniform_places(
    names: tuple[str, ...],
) -> tuple[tuple[NDArray[np.intp], NDArray[np.intp]], tuple[tuple[int, int], ...]]:
    """Places and numbers of the parameters among what is the same for all samples, and (place, number) of each constant."""
    split = [(place, *name.split(".")) for place, name in enumerate(names)]
    parameters = [(place, int(k)) for place, kind, k in split if kind == "p"]
    constants = tuple((place, int(k)) for place, kind, k in split if kind == "const")
    both = np.array(parameters, dtype=np.intp).reshape(-1, 2)
    return (both[:, 0], both[:, 1]), constants


def sample_arrays(tree: Tree, motion: Motion, names: Sequence[str]) -> list[Array]:
    """The columns of a motion that a kernel asks for, as views."""
    check_angles(tree, motion.q)
    return [_array(tree, motion, name) for name in names]


def _array(tree: Tree, motion: Motion, name: str) -> Array:
    array, column = sample_source(tree, motion, name)
    return array if column is None else array[:, column]


def sample_source(tree: Tree, motion: Motion, name: str) -> tuple[Array, int | None]:
    """The array of a motion that holds an input, and its column there; None where the array is the input itself."""
    kind, _, rest = name.partition(".")
    if kind in ("q", "qd", "qdd"):
        return getattr(motion, kind), int(rest)
    if kind == "t":
        assert motion.forces is not None  # the door of forward dynamics checked it
        return motion.forces, int(rest)
    if kind == "s":
        return (motion.signals[rest] if rest in motion.signals else _nothing(tree, motion, rest)), None
    if kind in ("f", "m"):
        body, _, axis = rest.partition(".")
        return motion.wrenches[tree.bodies[int(body)].name], int(axis) + (3 if kind == "m" else 0)
    base = motion.base
    assert base is not None  # check_motion refused a free tree without
    of = {
        "w": base.omega, "wd": base.omega_dot, "vd": base.acceleration, "v": base.velocity, "x": base.position, "e": base.quaternion
    }[kind]  # fmt: skip
    assert of is not None  # check_motion refused drag without a velocity, and tyres without a pose
    return of, int(rest)


def _nothing(tree: Tree, motion: Motion, name: str) -> Array:
    """Zeros for what tyres read of a road that the motion does not mention."""
    assert name in tree.road_signals  # check_motion refused other signals that are missing
    return np.broadcast_to(0.0, (len(motion),))
