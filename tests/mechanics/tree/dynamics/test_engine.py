"""Compiled kernels against the reference and Pinocchio: every quantity, every width, any number of samples, any layout in memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest

from strangers.cars import car_20, car_38
from strangers.machines import MACHINES, any_motion, branched_arm, free_machine
from strangers.pinocchio_oracle import PinModel
from strangers.random_trees import random_motion, random_tree
from veridyn.errors import DataError, IdentificationError, ModelError
from veridyn.identify.settings import IdentifySettings
from veridyn.mechanics.tree.dynamics import engine as machine_code
from veridyn.mechanics.tree.dynamics.engine import (
    LARGEST_ANGLE_RAD,
    MIN_COMPILED_SAMPLES,
    QUICK,
    Buffer,
    Compiled,
    compiled,
    filled,
    signature,
    wants_compiled,
)
from veridyn.mechanics.tree.dynamics.forward import (
    forward_derivatives,
    forward_dynamics,
    inverse_derivatives,
    mass_matrix,
)
from veridyn.mechanics.tree.dynamics.inverse import external_rows, inverse_dynamics, regressor
from veridyn.mechanics.tree.of_machine import tree_of
from veridyn.mechanics.tree.recursion.inputs import Request
from veridyn.mechanics.tree.recursion.kinematics import jacobian
from veridyn.mechanics.tree.tree import Tree
from veridyn.model.elements.element import spring
from veridyn.model.graph import Body
from veridyn.model.motion import Motion
from veridyn.spatial.rotations import MDH
from veridyn.symbolic.kernel import this_host

WIDTHS = (2, 4, 8)
# In the quick suite that of this processor; symbolic/test_emit_llvm.py runs pieces of every width there.
every_width = pytest.mark.parametrize(
    "width", [pytest.param(w, marks=() if w == this_host().width else pytest.mark.slow) for w in WIDTHS]
)
SAMPLES = (1, 2, 63, 64, 65, 1000)


@pytest.fixture(autouse=True, scope="module")
def own_cache(tmp_path_factory: pytest.TempPathFactory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("VERIDYN_CACHE", str(tmp_path_factory.mktemp("objects")))
        yield


def close(a: np.ndarray, b: np.ndarray, tolerance: float = 1e-12) -> bool:
    """Relative to the largest number of b."""
    return a.shape == b.shape and bool(
        np.abs(a - b).max(initial=0.0) <= tolerance * max(1.0, np.abs(b).max(initial=0.0))
    )


def rows_of(tree: Tree) -> tuple[int, ...]:
    return tuple(range(len(tree.rows)))


def bodies_of(tree: Tree, motion: Motion) -> tuple[int, ...]:
    return tuple(sorted(tree.index(b) for b in motion.wrenches))


def fates(tree: Tree) -> tuple[tuple[int, int, float, bool], ...]:
    """Parameter 4 known, 6 tied to 7, the rest estimated."""
    return tuple((c, 7, -1.5, True) if c == 6 else (c, c, 1.0, c != 4) for c in range(len(tree.columns)))


def equations(tree: Tree, motion: Motion) -> np.ndarray:
    """What "equations" must be, from the reference's regressor; the known side is last."""
    D, phi = regressor(tree, motion, engine="numpy"), tree.parameters.values
    out = np.zeros((len(motion), len(tree.rows), len(tree.columns) + 1))
    out[:, :, -1] = external_rows(tree, motion)
    for c, to, factor, asked in fates(tree):
        out[:, :, to if asked else -1] += factor * D[:, :, c] * (1.0 if asked else phi[to])
    return out


def accelerations(tree: Tree, motion: Motion) -> np.ndarray:
    caused = forward_dynamics(tree, motion, engine="numpy")
    if caused.base is None:
        return caused.qdd
    return np.hstack([caused.base.acceleration, caused.base.omega_dot, caused.qdd])


def slopes(tree: Tree, motion: Motion) -> np.ndarray:
    d = inverse_derivatives(tree, motion, engine="numpy")
    return np.stack([d.by_q, d.by_qd], axis=1)


# The request of a machine under a motion, the shape of the output, the reference, and the tolerance, wider behind a solve.
Case = tuple[
    Callable[[Tree, Motion], Request], Callable[[Tree], tuple[int, ...]], Callable[[Tree, Motion], np.ndarray], float
]
QUANTITIES: dict[str, Case] = {
    "inverse": (
        lambda tree, m: Request("inverse", rows_of(tree), bodies=bodies_of(tree, m)),
        lambda tree: (len(tree.rows),),
        lambda tree, m: inverse_dynamics(tree, m, engine="numpy"),
        1e-12,
    ),
    "regressor": (
        lambda tree, m: Request("regressor", rows_of(tree), tuple(range(len(tree.columns)))),
        lambda tree: (len(tree.rows), len(tree.columns)),
        lambda tree, m: regressor(tree, m, engine="numpy"),
        1e-12,
    ),
    "mass": (
        lambda tree, m: Request("mass"),
        lambda tree: (len(tree.rows), len(tree.rows)),
        lambda tree, m: mass_matrix(tree, m.q, engine="numpy"),
        1e-12,
    ),
    "forward": (
        lambda tree, m: Request("forward", rows_of(tree), bodies=bodies_of(tree, m)),
        lambda tree: (len(tree.rows),),
        accelerations,
        1e-11,
    ),
    "jacobian": (
        lambda tree, m: Request("jacobian", bodies=(len(tree.bodies) - 1,)),
        lambda tree: (6, len(tree.rows)),
        lambda tree, m: jacobian(tree, m.q, tree.bodies[-1].name, "body", engine="numpy"),
        1e-12,
    ),
    "equations": (
        lambda tree, m: Request("equations", rows_of(tree), fates(tree), bodies_of(tree, m)),
        lambda tree: (len(tree.rows), len(tree.columns) + 1),
        equations,
        1e-12,
    ),
    "inverse_derivatives": (
        lambda tree, m: Request("inverse_derivatives", rows_of(tree), bodies=bodies_of(tree, m)),
        lambda tree: (2, len(tree.rows), tree.n),
        slopes,
        1e-12,
    ),
}


@cache
def long_motion(name: str, strided: bool) -> Motion:
    return any_motion(tree_of(MACHINES[name]()), max(SAMPLES), strided=strided)


@cache
def reference(name: str, quantity: str) -> np.ndarray:
    return QUANTITIES[quantity][2](tree_of(MACHINES[name]()), long_motion(name, False))


def kernel(name: str, quantity: str, width: int) -> Compiled:
    tree = tree_of(MACHINES[name]())
    return compiled(tree, QUANTITIES[quantity][0](tree, long_motion(name, False)), host=this_host(width))


def run(name: str, quantity: str, width: int, motion: Motion, threads: int = 1) -> np.ndarray:
    tree = tree_of(MACHINES[name]())
    made, shape = kernel(name, quantity, width), QUANTITIES[quantity][1](tree)
    place = {label: (*label[:-1], label[-1] % shape[-1]) for label in made.labels}  # column −1 is the last one
    return filled(made, tree, motion, shape, place, threads=threads)


@every_width
@pytest.mark.parametrize("quantity", QUANTITIES)
@pytest.mark.parametrize("name", MACHINES)
def test_kernels_equal_the_reference(name: str, quantity: str, width: int) -> None:
    """All numbers of samples, contiguous and strided, to 1e-12 relative (1e-11 behind a solve)."""
    exact, tolerance = reference(name, quantity), QUANTITIES[quantity][3]
    for strided in (False, True):
        motion = long_motion(name, strided)
        for N in SAMPLES:
            assert close(run(name, quantity, width, motion[:N]), exact[:N], tolerance)


@pytest.mark.parametrize("quantity", QUANTITIES)
@pytest.mark.parametrize("name", MACHINES)
def test_threads_change_no_bit(name: str, quantity: str) -> None:
    width = this_host().width
    for strided in (False, True):
        motion = long_motion(name, strided)
        one = run(name, quantity, width, motion)
        for threads in (2, 3, 50):
            assert np.array_equal(run(name, quantity, width, motion, threads), one)


@pytest.mark.parametrize("seed", range(6))
def test_random_trees_against_pinocchio(seed: int) -> None:
    """Inverse dynamics, regressor, mass matrix and Jacobian of random machines, fixed and free, to 1e-12 of the largest number."""
    rng = np.random.default_rng(seed)
    tree = random_tree(
        rng, bodies=int(rng.integers(2, 7)), base=("fixed", "free")[seed % 2], virtual=0.2, shared=seed == 4
    )
    motion = random_motion(rng, tree, 70)
    bare = replace(motion, wrenches={})
    stranger = PinModel(tree)
    assert close(inverse_dynamics(tree, motion, engine="compiled"), stranger.inverse_dynamics(motion))
    assert close(regressor(tree, bare, engine="compiled"), stranger.regressor(bare))
    assert close(mass_matrix(tree, motion.q, engine="compiled"), stranger.mass_matrix(motion.q))
    body = tree.bodies[-1].name
    for local in (False, True):
        frame = "body" if local else "ground"
        assert close(jacobian(tree, motion.q, body, frame, engine="compiled"), stranger.jacobian(motion.q, body, local))


@every_width
@pytest.mark.parametrize("seed", range(3))
def test_random_trees_on_every_width(seed: int, width: int) -> None:
    rng = np.random.default_rng(30 + seed)
    tree = random_tree(rng, bodies=5, base=("fixed", "free")[seed % 2], virtual=0.2)
    motion = random_motion(rng, tree, 67)
    rows, host, stranger = rows_of(tree), this_host(width), PinModel(tree)
    inverse = compiled(tree, Request("inverse", rows, bodies=bodies_of(tree, motion)), host)
    assert close(filled(inverse, tree, motion, (len(rows),)), stranger.inverse_dynamics(motion))
    D = compiled(tree, Request("regressor", rows, tuple(range(len(tree.columns)))), host)
    assert close(filled(D, tree, motion, (len(rows), len(tree.columns))), stranger.regressor(motion))
    mass = compiled(tree, Request("mass"), host)
    assert close(filled(mass, tree, motion, (len(rows), len(rows))), stranger.mass_matrix(motion.q))


@pytest.mark.parametrize("car", [car_20, pytest.param(car_38, marks=pytest.mark.slow)])
def test_the_cars_of_paper_000(car: Callable[..., Tree]) -> None:
    """All bodies with inertia, all elements: 219 and 389 parameters, regressor and inverse dynamics."""
    tree = car("all", elements=True)
    tree = tree.with_parameters(np.random.default_rng(0).normal(size=len(tree.parameters)))
    motion = any_motion(tree, 300)
    for call in (DOORS["inverse_dynamics"], DOORS["regressor"]):
        assert close(call(tree, motion, "compiled", 2), call(tree, motion, "numpy", 1))


@pytest.mark.parametrize("seed", range(4))
def test_forward_dynamics_against_pinocchio(seed: int) -> None:
    """The articulated-body algorithm, to 1e-10: the condition of the mass matrix passes rounding on."""
    rng = np.random.default_rng(10 + seed)
    tree = random_tree(rng, bodies=5, base=("fixed", "free")[seed % 2], kinds=("turning", "sliding"))
    motion = random_motion(rng, tree, 40)
    gamma = rng.normal(size=(40, tree.n))
    caused = forward_dynamics(tree, replace(motion, forces=gamma), engine="compiled")
    rows = gamma if tree.base == "fixed" else np.hstack([np.zeros((40, 6)), gamma])
    exact = PinModel(tree).forward_dynamics(motion, rows)
    assert close(caused.qdd, exact.qdd, 1e-10)
    if tree.base == "free":
        assert close(caused.base.acceleration, exact.acceleration, 1e-10)
        assert close(caused.base.omega_dot, exact.omega_dot, 1e-10)


def pivoting(places: np.ndarray) -> tuple[Tree, Motion]:
    """A point of 1 kg that slides through the axis of a turning rod without inertia: nothing turns where it meets the axis."""
    bodies = [Body("rod"), Body("point", "rod", "sliding", MDH(alpha=np.pi / 2))]
    tree = Tree.build(bodies, inertia={"rod": [0] * 10, "point": [0, 0, 0, 0, 0, 0, 0, 0, 0, 1]})
    q = np.column_stack([np.full(len(places), 0.3), places])
    return tree, Motion(np.arange(float(len(places))), q, q, q, forces=np.ones_like(q))


@pytest.mark.parametrize("engine", ["numpy", "compiled"])
@pytest.mark.parametrize("nearest", [0.0, 1e-9])
def test_a_sample_that_moves_no_mass_is_refused(engine: str, nearest: float) -> None:
    """Not the first one, so that a look at the first is not enough."""
    tree, motion = pivoting(np.array([0.5, 0.4, 0.2, nearest, 0.3]))
    with pytest.raises(ModelError, match="moves no mass"):
        forward_dynamics(tree, motion, engine=engine)
    tree, motion = pivoting(np.array([0.5, 0.4, 0.2, 1e-3, 0.3]))
    assert np.isfinite(forward_dynamics(tree, motion, engine=engine).qdd).all()


def by_pinocchio(tree: Tree, motion: Motion) -> np.ndarray:
    """(N, 2, n, n): ∂Γ/∂q and ∂Γ/∂q̇ by Pinocchio's derivatives of its recursion, wrenches held in their bodies."""
    p = PinModel(tree)
    out = np.zeros((len(motion), 2, tree.n, tree.n))
    for k in range(len(motion)):
        q, v, a = p.configuration(motion.q[k]), p._velocity(motion, k), p._acceleration(motion, k)
        by_q, by_v, _ = pin.computeRNEADerivatives(p.model, p.data, q, v, a, p._external(motion.wrenches, k))
        out[k] = [p.S.T @ by_q.reshape(p.model.nv, -1) @ p.S, p.S.T @ by_v.reshape(p.model.nv, -1) @ p.S]
    return out


@every_width
@pytest.mark.parametrize("seed", range(2))
def test_derivatives_against_pinocchio(seed: int, width: int) -> None:
    rng = np.random.default_rng(20 + seed)
    tree = random_tree(rng, bodies=5, shared=seed == 1)
    motion = random_motion(rng, tree, 20)
    request = Request("inverse_derivatives", rows_of(tree), bodies=bodies_of(tree, motion))
    found = filled(compiled(tree, request, this_host(width)), tree, motion, (2, tree.n, tree.n))
    assert close(found, by_pinocchio(tree, motion), 1e-11)


@pytest.mark.parametrize("name", MACHINES)
def test_derivatives_by_differences(name: str) -> None:
    """Elements, drag and a free base too: central differences of the reference, step 1e-6, leave about 1e-8."""
    tree = tree_of(MACHINES[name]())
    motion = long_motion(name, False)[:5]
    found = run(name, "inverse_derivatives", this_host().width, motion)
    for which, symbol in enumerate(("q", "qd")):
        for k in range(tree.n):
            ends = []
            for step in (1e-6, -1e-6):
                moved = np.array(getattr(motion, symbol))
                moved[:, k] += step
                ends.append(inverse_dynamics(tree, replace(motion, **{symbol: moved}), engine="numpy"))
            assert close(found[:, which, :, k], (ends[0] - ends[1]) / 2e-6, 1e-7)


DOORS: dict[str, Callable[[Tree, Motion, str, int], np.ndarray]] = {
    "inverse_dynamics": lambda t, m, e, n: inverse_dynamics(t, m, engine=e, threads=n),
    "inverse_dynamics of some rows": lambda t, m, e, n: inverse_dynamics(
        t, m, [t.rows[-1], t.rows[0]], engine=e, threads=n
    ),
    "inverse_dynamics with parameters": lambda t, m, e, n: inverse_dynamics(
        t, m, parameters=1.1 * t.parameters.values, engine=e, threads=n
    ),
    "regressor": lambda t, m, e, n: regressor(t, m, engine=e, threads=n),
    "regressor of some columns": lambda t, m, e, n: regressor(t, m, [t.rows[-1]], [12, 3, 9], engine=e, threads=n),
    "forward_dynamics": lambda t, m, e, n: forward_dynamics(t, m, engine=e, threads=n).qdd,
    "mass_matrix": lambda t, m, e, n: mass_matrix(t, m.q, engine=e, threads=n),
    "jacobian": lambda t, m, e, n: jacobian(t, m.q, t.bodies[-1].name, engine=e, threads=n),
    "inverse_derivatives": lambda t, m, e, n: inverse_derivatives(t, m, engine=e, threads=n).by_q,
    "forward_derivatives": lambda t, m, e, n: forward_derivatives(t, m, engine=e, threads=n).by_qd,
}


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("name", MACHINES)
def test_one_keyword_chooses_the_engine(name: str, door: str) -> None:
    tree = tree_of(MACHINES[name]())
    motion = long_motion(name, False)[:600]
    by_numpy = DOORS[door](tree, motion, "numpy", 1)
    for threads in (1, 2):
        assert close(DOORS[door](tree, motion, "compiled", threads), by_numpy, 1e-10 if "forward" in door else 1e-12)


@pytest.mark.parametrize("door", [*DOORS, "observation"])
def test_an_unknown_engine_is_refused(door: str) -> None:
    tree = tree_of(branched_arm())
    call = DOORS.get(door)
    if call is None:  # the engine of an observation is one of its settings
        with pytest.raises(
            IdentificationError, match=r"IdentifySettings\.engine: .*\n.*'auto' or 'compiled' or 'numpy'"
        ):
            IdentifySettings(engine="fast")  # pyright: ignore[reportArgumentType]
        return
    with pytest.raises(DataError, match=r"there is no engine 'fast'[\s\S]*'auto', 'compiled' or 'numpy'"):
        call(tree, any_motion(tree, 3), "fast", 1)


def test_no_samples() -> None:
    tree = tree_of(branched_arm())
    motion = long_motion("branched arm", False)[:0]
    assert inverse_dynamics(tree, motion, engine="compiled").shape == (0, tree.n)
    assert regressor(tree, motion, engine="compiled").shape == (0, tree.n, len(tree.columns))


def test_memory_may_be_used_again() -> None:
    """Other motions, quantities, columns, lengths and machines through one buffer: always the same numbers as in fresh memory."""
    buffer = Buffer()
    arm, machine = tree_of(branched_arm()), tree_of(free_machine())
    every = len(arm.columns)
    for strided in (False, True):
        on_arm, on_machine = long_motion("branched arm", strided), long_motion("free machine", strided)
        calls: list[Callable[[Buffer | None], np.ndarray]] = [
            lambda out, m=on_arm: regressor(arm, m, wanted=[0, 9, 40], engine="compiled", out=out),
            lambda out, m=on_arm: regressor(arm, m, wanted=[every - 1, every - 2, 25], engine="compiled", out=out),
            lambda out, m=on_arm: regressor(arm, m, wanted=[25, every - 1, every - 2], engine="compiled", out=out),
            lambda out, m=on_arm: regressor(arm, m[:65], engine="compiled", out=out),
            lambda out, m=on_arm: inverse_dynamics(arm, m[:64], engine="compiled", out=out),
            lambda out, m=on_arm: inverse_dynamics(arm, m[24:64], engine="compiled", out=out),
            lambda out, m=on_arm: inverse_dynamics(arm, m[24:63], ["q4", "q1"], engine="compiled", out=out),
            lambda out, m=on_machine: inverse_dynamics(machine, m, engine="compiled", out=out, threads=2),
            lambda out, m=on_machine: regressor(machine, m, ["c"], engine="compiled", out=out),
        ]
        for call in (*calls, *reversed(calls)):
            assert np.array_equal(call(buffer), call(None))


def test_a_buffer_is_written_over() -> None:
    """A result lasts until the next call with its buffer, which needs no new memory."""
    tree, motion, buffer = tree_of(branched_arm()), long_motion("branched arm", False), Buffer()
    first = inverse_dynamics(tree, motion, engine="compiled", out=buffer)
    other = any_motion(tree, len(motion), seed=9)
    second = inverse_dynamics(tree, other, engine="compiled", out=buffer)
    assert np.shares_memory(first, second) and np.array_equal(first, second)


def test_a_column_asked_for_twice_is_refused() -> None:
    for engine in ("numpy", "compiled"):
        with pytest.raises(DataError, match="a column is given twice"):
            regressor(tree_of(branched_arm()), any_motion(tree_of(branched_arm()), 3), wanted=[5, 5], engine=engine)


def slides() -> Tree:
    """Two sliding joints, whose Jacobian does not depend on anything, and a spring."""
    X = [1, 0, 0, 1, 0, 1, 0, 0, 0, 1]
    bodies = [Body("1", joint="sliding"), Body("2", "1", "sliding", MDH(alpha=np.pi / 2))]
    return Tree.build(bodies, inertia={"1": X, "2": X}, elements=[spring("q1", 3.0)])


def test_outputs_that_are_constants() -> None:
    tree = slides()
    q = np.random.default_rng(0).normal(size=(5, 2))
    for frame in ("body", "ground"):
        constant = jacobian(tree, q, "2", frame, engine="numpy")
        assert np.abs(constant).max() == 1.0
        assert close(jacobian(tree, q, "2", frame, engine="compiled"), constant)


def test_outputs_that_are_inputs() -> None:
    tree = slides()
    motion = any_motion(tree, 5)
    spring_only = regressor(tree, motion, wanted=[20], engine="compiled")
    assert close(spring_only[:, 0, 0], motion.q[:, 0]) and np.array_equal(spring_only[:, 1, 0], np.zeros(5))


def test_no_columns() -> None:
    assert regressor(slides(), any_motion(slides(), 5), wanted=[], engine="compiled").shape == (5, 2, 0)


def test_signals_in_records() -> None:
    """A signal that is a field of a structured array, whose stride is no multiple of eight bytes."""
    tree = tree_of(free_machine())
    motion = any_motion(tree, 70)
    table = np.zeros(70, dtype=[("n", "i4"), ("i", "f8")])
    table["i"] = motion.signals["i"]
    assert close(
        inverse_dynamics(tree, replace(motion, signals={"i": table["i"]}), engine="compiled"),
        inverse_dynamics(tree, motion, engine="numpy"),
    )


@pytest.mark.parametrize("far", [1.0001e6, -3e7])
def test_angles_too_far_from_zero_are_refused(far: float) -> None:
    tree = tree_of(branched_arm())
    motion = any_motion(tree, 3)
    q = np.array(motion.q)
    q[1, 0] = far
    expected = rf"branched arm: an angle is too far from zero[\s\S]*{LARGEST_ANGLE_RAD:g}[\s\S]*Take whole turns off"
    for call in (DOORS["inverse_dynamics"], DOORS["regressor"], DOORS["mass_matrix"], DOORS["jacobian"]):
        with pytest.raises(DataError, match=expected.replace("+", r"\+")):
            call(tree, replace(motion, q=q), "compiled", 1)
    assert np.isfinite(inverse_dynamics(tree, replace(motion, q=q), engine="numpy")).all()


def test_angles_up_to_a_million_are_right() -> None:
    """Whole turns far out: both engines agree to 1e-11, since q itself is exact."""
    tree = tree_of(branched_arm())
    motion = any_motion(tree, 200)
    q = np.array(motion.q)
    turning = [k for k, kind in enumerate(tree.coordinate_kinds) if kind == "turning"]
    q[:, turning] = np.random.default_rng(0).uniform(-LARGEST_ANGLE_RAD, LARGEST_ANGLE_RAD, (200, len(turning)))
    far = replace(motion, q=q, forces=None)
    # The spring on q1 and q4 grows with the angle; without it the rest shows.
    free = tree.with_parameters({"k_bar": 0.0})
    assert close(inverse_dynamics(free, far, engine="compiled"), inverse_dynamics(free, far, engine="numpy"), 1e-11)


def test_slides_may_go_anywhere() -> None:
    """A place along a line has no sine: ten thousand kilometres are fine."""
    tree = slides()
    motion = replace(any_motion(tree, 5), q=np.full((5, 2), 1e7))
    assert close(inverse_dynamics(tree, motion, engine="compiled"), inverse_dynamics(tree, motion, engine="numpy"))


def test_a_gear_may_not_carry_an_angle_out_of_reach() -> None:
    """The sine is taken of ratio times coordinate: that must be refused too, or right."""
    tree = Tree.build([Body("1", coordinate="motor", ratio=100.0)], inertia={"1": [1, 0, 0, 1, 0, 1, 0.5, 0.1, 0, 1]})
    tree = replace(tree, gravity=np.array([9.81, 0.0, 0.0]))
    q = np.linspace(0.9e6, 1e6, 100)[:, None]
    motion = Motion(np.arange(100.0), q, 0 * q, 0 * q)
    with pytest.raises(DataError, match="too far from zero"):
        inverse_dynamics(tree, motion, engine="compiled")
    near = replace(motion, q=q / 100)
    assert close(inverse_dynamics(tree, near, engine="compiled"), inverse_dynamics(tree, near, engine="numpy"), 1e-11)


def small(seed: int, **changes: object) -> Tree:
    tree = random_tree(np.random.default_rng(seed), bodies=3, kinds=("turning",))
    return replace(tree, **changes) if changes else tree


@pytest.fixture
def compilations(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[int]:
    """Counts what is compiled from here on, with an empty folder of objects."""
    monkeypatch.setenv("VERIDYN_CACHE", str(tmp_path))
    made: list[int] = []
    compiling = machine_code.compile_object
    monkeypatch.setattr(machine_code, "compile_object", lambda *a: made.append(1) or compiling(*a))
    return made


def test_parameters_are_inputs(compilations: list[int]) -> None:
    """Other values, by argument or with the tree, and other names compile nothing; other geometry or gravity does."""
    tree = small(100)
    motion = random_motion(np.random.default_rng(0), tree, 5, wrenches=False)

    def check(machine: Tree, parameters: np.ndarray | None = None) -> int:
        found = inverse_dynamics(machine, motion, parameters=parameters, engine="compiled")
        assert close(found, inverse_dynamics(machine, motion, parameters=parameters, engine="numpy"))
        return len(compilations)

    assert check(tree) == 1
    assert check(tree, 1.3 * tree.parameters.values) == 1
    assert check(tree.with_parameters(0.7 * tree.parameters.values)) == 1
    renamed = replace(tree, name="other", bodies=tuple(replace(b, label=f"n{b.name}") for b in tree.bodies))
    assert check(renamed) == 1
    assert check(replace(tree, gravity=np.array([0.0, 1.0, -9.0]))) == 2
    moved = replace(tree.bodies[1], placement=MDH(alpha=0.1, d=0.2))
    assert check(replace(tree, bodies=(tree.bodies[0], moved, tree.bodies[2]))) == 3
    turned = replace(tree.bodies[2], joint="sliding")
    assert check(replace(tree, bodies=(*tree.bodies[:2], turned))) == 4


def test_each_request_and_width_has_an_object_of_its_own(compilations: list[int], tmp_path: Path) -> None:
    tree = small(101)
    rows = rows_of(tree)
    requests = [
        Request("inverse", rows),
        Request("inverse", rows[:1]),
        Request("inverse", rows, bodies=(1,)),
        Request("mass"),
    ]
    for k, request in enumerate(requests, start=1):
        compiled(tree, request)
        assert len(list(tmp_path.glob("*.object"))) == len(compilations) == k
    other = next(w for w in WIDTHS if w != this_host().width)
    compiled(tree, requests[0], this_host(other))
    assert len(list(tmp_path.glob("*.object"))) == len(compilations) == 5
    compiled(tree, requests[0], single=True)
    assert len(list(tmp_path.glob("*.object"))) == len(compilations) == 6
    assert compiled(tree, requests[0]) is compiled(tree, requests[0])
    assert len(compilations) == 6


def test_a_single_kernel_is_not_one_of_width_one(compilations: list[int]) -> None:
    """They differ in their block, so they must not be taken for one another, whichever is made first."""
    tree = small(102)
    request = Request("inverse", rows_of(tree))
    blocks = compiled(tree, request, this_host(1)), compiled(tree, request, single=True)
    assert [c.kernel.block for c in blocks] == [64, 1]


def test_a_damaged_object_is_made_again(compilations: list[int], tmp_path: Path) -> None:
    from veridyn.symbolic import cache

    tree = small(103)
    request = Request("inverse", rows_of(tree))
    compiled(tree, request)
    file = next(tmp_path.glob("*.object"))
    file.write_bytes(file.read_bytes()[:-10] + b"0123456789")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cache, "_memory", {})
        motion = random_motion(np.random.default_rng(0), tree, 5, wrenches=False)
        found = inverse_dynamics(tree, motion, engine="compiled")
    assert close(found, inverse_dynamics(tree, motion, engine="numpy")) and len(compilations) == 2


def test_without_a_folder_for_objects(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VERIDYN_CACHE", "off")
    tree = small(104)
    motion = random_motion(np.random.default_rng(0), tree, 5, wrenches=False)
    assert close(inverse_dynamics(tree, motion, engine="compiled"), inverse_dynamics(tree, motion, engine="numpy"))


def test_sources_edited_under_a_running_process(compilations: list[int], monkeypatch, tmp_path: Path) -> None:
    """Which code made a kernel is not known then: it is made and used, and not kept."""
    monkeypatch.setattr(machine_code, "source_digest", lambda _: None)
    tree = small(105)
    motion = random_motion(np.random.default_rng(0), tree, 5, wrenches=False)
    for _ in range(2):
        found = inverse_dynamics(tree, motion, engine="compiled")
        assert close(found, inverse_dynamics(tree, motion, engine="numpy"))
    assert len(compilations) == 1 and list(tmp_path.iterdir()) == []


def test_auto_compiles_where_it_pays(compilations: list[int]) -> None:
    """Few samples and nothing there: the reference. Many samples, or an object that is there: machine code."""
    tree = small(106)
    request = Request("inverse", rows_of(tree))
    pays = MIN_COMPILED_SAMPLES * QUICK["inverse"]
    assert not wants_compiled("auto", tree, request, pays - 1) and wants_compiled("auto", tree, request, pays)
    assert wants_compiled("auto", tree, Request("regressor", rows_of(tree)), MIN_COMPILED_SAMPLES)
    motion = random_motion(np.random.default_rng(0), tree, 5, wrenches=False)
    inverse_dynamics(tree, motion)
    assert compilations == []
    inverse_dynamics(tree, motion, engine="compiled")
    assert len(compilations) == 1 and wants_compiled("auto", tree, request, 1)
    assert wants_compiled("compiled", tree, Request("mass"), 1) and not wants_compiled(
        "numpy", tree, request, MIN_COMPILED_SAMPLES
    )


def test_the_signature_tells_machines_apart() -> None:
    tree = small(100)
    assert signature(tree) == signature(small(100))
    assert (
        len({signature(t) for t in (tree, small(101), replace(tree, gravity=np.zeros(3)), tree_of(branched_arm()))})
        == 4
    )


def test_the_count_travels_with_the_object() -> None:
    made = kernel("branched arm", "inverse", this_host().width)
    assert made.count.total > 100 and made.count.trigonometric == 8  # q1, q4, q5 and −0.7 q4
