"""The gradient of a number made of a run: SciPy on Pinocchio's dynamics by differences, ties, gaps, and refusals by name."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pinocchio as pin
import pytest
from numpy.typing import NDArray
from scipy.integrate import solve_ivp

import veridyn as vd
from strangers.pinocchio_logs import ArmLink, machine, pin_model, truth
from veridyn.errors import DataError, ModelError
from veridyn.model.controller import Controller
from veridyn.model.parameters import Tie

Array = NDArray[np.float64]
ARM = [
    ArmLink(mass=2.0, centre=(0.05, 0.0, 0.1), moments=(0.02, 0.02, 0.01), viscous=0.4),
    ArmLink(
        rpy=(1.5, 0.0, 0.2), xyz=(0.0, 0.0, 0.2), mass=1.5, centre=(0.2, 0.02, 0.0), moments=(0.005, 0.03, 0.03), viscous=0.3
    ),
    ArmLink(rpy=(0.1, 0.2, 0.0), xyz=(0.4, 0.0, 0.0), mass=0.8, centre=(0.1, 0.0, 0.03), moments=(0.002, 0.01, 0.01), viscous=0.2),
]  # fmt: skip
STEP, N = 0.01, 3
T = STEP * np.arange(31)
START = np.array([0.3, -0.2, 0.5, 0.1, 0.2, -0.4])
KP, KD = np.array([30.0, 40.0, 8.0]), np.array([3.0, 4.0, 0.8])
COMMAND = np.stack([0.4 * np.sin(5.0 * T), 0.3 * np.cos(4.0 * T), 0.5 + 0.2 * np.sin(7.0 * T)], axis=1)
SPEED = np.gradient(COMMAND, STEP, axis=0)
SEEN = np.random.default_rng(2).normal(scale=0.2, size=(len(T), N))  # what a bad fit would be compared with
DIFFERENCE = 1e-4  # relative, of what is differentiated: runs are good to 1e-12, so that differences are to 1e-7


def stranger(
    arm: list[ArmLink], y: Array, force: Callable[[int, float, Array], Array], mass: float = 0.0, damping: float = 0.0
) -> Array:
    """States (K, 6) by SciPy at 1e-12 on Pinocchio's dynamics from sample to sample, with more mass at the end and more damping."""
    more = [*arm[:2], replace(arm[2], mass=arm[2].mass + mass)]
    model = pin_model(more)
    data, viscous = model.createData(), np.array([link.viscous for link in more]) + np.array([damping, 0.0, 0.0])
    out = [y]
    for k, (a, b) in enumerate(itertools.pairwise(T)):  # forces have a kink, or a leap, at every sample

        def rate(time: float, y: Array, k: int = k) -> Array:
            return np.concatenate([y[N:], pin.aba(model, data, y[:N], y[N:], force(k, time, y) - viscous * y[N:])])

        y = solve_ivp(rate, (a, b), y, "DOP853", rtol=1e-12, atol=1e-13).y[:, -1]
        out.append(y)
    return np.array(out)


def linear(x: Array) -> Callable[[float], Array]:
    return lambda time: np.array([np.interp(time, T, c) for c in x.T])


def differences(number: Callable[[float], float], size: float = 1.0) -> float:
    d = DIFFERENCE * size
    return (8.0 * (number(d) - number(-d)) - (number(2.0 * d) - number(-2.0 * d))) / (12.0 * d)


def by_more_mass(found: Array, names: list[str]) -> float:
    """The gradient by the mass of the last link, its centre and moments about that held: ten parameters change with it."""
    change = pin.Inertia(1.0, np.array(ARM[2].centre), np.zeros((3, 3))).toDynamicParameters()
    moments = dict(zip(("M", "MX", "MY", "MZ", "XX", "XY", "YY", "XZ", "YZ", "ZZ"), change, strict=True))
    return float(sum(found[names.index(f"{symbol}_link3")] * x for symbol, x in moments.items()))


def described(law: bool) -> vd.Machine:
    """The arm; with a continuous law, K_p (r − q) + K_d (ṙ − q̇) is springs and dampers of its joints under the forces K_p r + K_d ṙ."""
    own = machine(ARM).with_parameters(truth(ARM))
    if not law:
        return own
    links = [replace(link, viscous=float(link.viscous + kd)) for link, kd in zip(ARM, KD, strict=True)]
    springs = [vd.elements.spring(f"q{j + 1}", float(KP[j])) for j in range(N)]
    return machine(links).with_elements(springs).with_parameters(truth(links))


def test_a_continuous_law_beside_scipy_on_the_dynamics_of_pinocchio() -> None:
    """Residuals of positions and rates: by mass and damping, the start, and a gain, which is a parameter and scales a force."""
    own = described(law=True)
    forces, names = KP * COMMAND + KD * SPEED, list(own.parameters.names)
    found = vd.dynamics.integrate_gradient(
        own, T, START[:N], START[N:], forces, measured={"q": SEEN, "qd": SEEN}, weights={"qd": 0.1}, step=STEP / 40
    )

    def number(mass: float = 0.0, damping: float = 0.0, start: Array = START, kp: float = 0.0) -> float:
        more = KP + np.array([0.0, kp, 0.0])
        asked = linear(more * COMMAND + KD * SPEED)
        y = stranger(ARM, start, lambda k, time, y: asked(time) - more * y[:N] - KD * y[N:], mass, damping)
        return float(((y[:, :N] - SEEN) ** 2).sum() + 0.1 * ((y[:, N:] - SEEN) ** 2).sum())

    assert found.value == pytest.approx(number(), rel=1e-9)
    assert by_more_mass(found.by_parameters, names) == pytest.approx(differences(lambda d: number(mass=d)), rel=1e-6)
    assert found.by_parameters[names.index("h_q1")] == pytest.approx(differences(lambda d: number(damping=d)), rel=1e-6)
    gain = found.by_parameters[names.index("k_q2")] + COMMAND[:, 1] @ found.by_forces[:, 1]
    assert gain == pytest.approx(differences(lambda d: number(kp=d), 10.0), rel=1e-6)
    ours = np.concatenate([found.by_q, found.by_qd])
    for k in (1, 5):
        assert ours[k] == pytest.approx(differences(lambda d, k=k: number(start=START + d * np.eye(6)[k])), rel=1e-6)


LAWS = [
    Controller(
        name="one", kind="pid", on="q1", rate=100.0, constants={"kp": 30.0, "ki": 40.0, "kd": 3.0, "zero": 0.02}
    ),
    Controller(name="two", kind="pd", on="q2", rate=100.0, constants={"kp": 40.0, "kd": 4.0, "limit": 5.0}),
    Controller(
        name="three", kind="pid", on="q3", rate=100.0, constants={"kp": 8.0, "ki": 20.0, "kd": 0.8, "limit": 1.0}
    ),
]


def sampled_number(mass: float = 0.0, start: Array = START, **changed: float) -> tuple[float, Array]:
    """The number of the test below, with laws ticked by hand; and the forces (K, 3)."""
    value = {f"{c.name}_{key}": x for c in LAWS for key, x in c.constants.items()}
    value = {key: x + changed.get(key, 0.0) for key, x in value.items()}
    integral, acted = np.zeros(N), []

    def tick(k: int, y: Array) -> Array:
        force = np.zeros(N)
        for j, c in enumerate(LAWS):
            of = {key: value.get(f"{c.name}_{key}", 0.0) for key in ("kp", "ki", "kd", "zero")}
            limit, e = value.get(f"{c.name}_limit", np.inf), COMMAND[k, j] - y[j] - of["zero"]
            raw = of["kp"] * e + of["kd"] * (SPEED[k, j] - y[N + j]) + integral[j]
            force[j] = np.clip(raw, -limit, limit)
            integral[j] += 0.0 if (raw - force[j]) * of["ki"] * e > 0.0 else STEP * of["ki"] * e
        acted.append(force)
        return force

    def force(k: int, time: float, y: Array) -> Array:
        return acted[k] if k < len(acted) else tick(k, y)  # SciPy asks first at the tick itself

    y = stranger(ARM, start, force, mass)
    tick(len(T) - 1, y[-1])
    off = np.array(acted) - SEEN
    off[4:9, 1] = 0.0
    return float(((y[:, :N] - SEEN) ** 2).sum() + 1e-2 * (off**2).sum()), np.array(acted)


def test_sampled_laws_beside_scipy_on_the_dynamics_of_pinocchio() -> None:
    """Residuals of positions and of the forces of laws, some not measured: by a mass, the start, gains, a zero and a limit."""
    own = described(law=False).with_controllers(LAWS)
    names, seen = list(own.parameters.names), SEEN.copy()
    seen[4:9, 1] = np.nan
    command = np.stack([COMMAND, SPEED], axis=1)
    found = vd.dynamics.integrate_gradient(
        own, T, START[:N], START[N:], command=command, measured={"q": SEEN, "forces": seen}, weights={"forces": 1e-2}
    )
    value, acted = sampled_number()
    limits = np.array([np.inf, 5.0, 1.0])
    assert (np.abs(acted) == limits).any(axis=0).tolist() == [False, True, True]
    assert found.forces == pytest.approx(acted, abs=1e-8)
    assert found.value == pytest.approx(value, rel=1e-9)
    assert by_more_mass(found.by_parameters, names) == pytest.approx(
        differences(lambda d: sampled_number(mass=d)[0]), rel=1e-6
    )
    assert found.by_qd[0] == pytest.approx(
        differences(lambda d: sampled_number(start=START + d * np.eye(6)[3])[0]), rel=1e-6
    )
    for key in ("one_kp", "one_ki", "one_zero", "two_kd", "two_limit", "three_ki", "three_limit"):
        expected = differences(lambda d, key=key: sampled_number(**{key: d})[0])
        assert found.by_controllers[key.replace("_", ".", 1)] == pytest.approx(expected, rel=1e-6), key


def test_tied_parameters_and_signals() -> None:
    """By the parameter that others follow, and by a signal, as differences of runs of their own; the other columns are zero."""
    own = described(law=False).with_elements([vd.elements.drive_gain("q2", "i", 2.0)])
    own = own.with_parameters(own.parameters.tied({"h_q3": Tie("h_q1", 0.5)}))
    names, current = list(own.parameters.names), np.cos(9.0 * T)

    def run_with(values: Array, signal: Array):
        return vd.dynamics.integrate_gradient(
            own, T, START[:N], START[N:], weights={"q": [1.0, 2.0, -1.0]}, parameters=values, signals={"i": signal}
        )

    values = own.parameters.values
    found = run_with(values, current)
    k, d = names.index("h_q1"), 1e-4
    change = d * (np.arange(len(names)) == k)
    expected = (run_with(values + change, current).value - run_with(values - change, current).value) / (2.0 * d)
    assert found.by_parameters[k] == pytest.approx(expected, rel=1e-7)
    assert found.by_parameters[names.index("h_q3")] == 0.0
    later = d * (np.arange(len(T)) == 11)
    expected = (run_with(values, current + later).value - run_with(values, current - later).value) / (2.0 * d)
    assert found.by_signals["i"][11] == pytest.approx(expected, rel=1e-7)


def test_what_is_not_usable_is_named() -> None:
    own = described(law=False)
    at = T, START[:N], START[N:]
    wrong = {"q": np.zeros((3, N)), "speed": np.zeros((len(T), N))}
    with pytest.raises(DataError, match=r"no such output[\s\S]*wrong shape|wrong shape[\s\S]*no such output"):
        vd.dynamics.integrate_gradient(own, *at, measured=wrong)
    with pytest.raises(DataError, match="nothing to differentiate"):
        vd.dynamics.integrate_gradient(own, *at)
    with pytest.raises(DataError, match="one run"):
        vd.dynamics.integrate_gradient(own, T, np.zeros((2, N)), START[N:], weights={"q": 1.0})
    with pytest.raises(ModelError, match="no controllers"):
        vd.dynamics.integrate_gradient(own, *at, weights={"q": 1.0}, command=np.zeros((len(T), 2, 0)))
    odd = replace(LAWS[0], constants={**LAWS[0].constants, "command_delay": 0.01, "rate_limit": 5.0})
    cascade = replace(LAWS[1], kind="cascade", rate=70.0, constants={"kp": 1.0, "kv": 1.0})
    with pytest.raises(ModelError, match=r"different rates[\s\S]*rate_limit, command_delay[\s\S]*kind cascade"):
        vd.dynamics.integrate_gradient(
            own.with_controllers([odd, cascade]), *at, weights={"q": 1.0}, command=np.zeros((len(T), 2, 2))
        )
    with pytest.raises(ModelError, match="no whole number of steps"):
        vd.dynamics.integrate_gradient(
            own.with_controllers([replace(LAWS[0], rate=70.0)]),
            *at,
            weights={"q": 1.0},
            command=np.zeros((len(T), 2, 1)),
        )
    with pytest.raises(DataError, match=r"command[\s\S]*\(31, 2, 3\)"):
        vd.dynamics.integrate_gradient(own.with_controllers(LAWS), *at, weights={"q": 1.0}, command=COMMAND)
