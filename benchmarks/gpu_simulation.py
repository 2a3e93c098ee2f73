"""Simulations of many arms on a GPU, beside JAX in the same run: ``python -m benchmarks.gpu_simulation [--arms N] [--steps N] [--json]``.

The 7-joint arm without friction, from random states, under no forces, by the classical Runge-Kutta method with steps of 1 ms, in double
precision. The peer is Featherstone's articulated-body algorithm, written with small arrays, mapped over arms and compiled by XLA, all
steps in one loop on the device. Both start from the same states, and their ends are compared.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import veridyn as vd
from benchmarks.gpu import peer_tree
from benchmarks.made_logs import arm

STEP = 1e-3  # s
REPEATS = 5
SEED = 3
COMPARED = 1000  # arms whose ends are compared
ORIGINS = (0.5, 1.0)  # rad and rad/s, deviations of the states at the start


def seconds(work: Callable[[], Any]) -> float:
    """The median time of a call that ends when the device has."""
    work()
    spent = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        work()
        spent.append(time.perf_counter() - start)
    return sorted(spent)[REPEATS // 2]


def ours(q: np.ndarray, qd: np.ndarray, steps: int) -> tuple[float, np.ndarray]:
    """Seconds, and the positions at the end."""
    import cupy

    machine, times = arm(), np.array([0.0, steps * STEP])
    q_there, qd_there = cupy.asarray(q), cupy.asarray(qd)
    ends: list[Any] = []

    def work() -> None:
        ends[:] = [vd.gpu.integrate(machine, times, q_there, qd_there, steps=steps).q[-1]]
        cupy.cuda.Device().synchronize()

    return seconds(work), cupy.asnumpy(ends[0])


def in_jax(q: np.ndarray, qd: np.ndarray, steps: int) -> tuple[float, np.ndarray]:
    """The same by the peer."""
    import jax
    import jax.numpy as jnp

    jax.config.update("jax_enable_x64", True)
    machine = arm()
    accelerations = articulated_body(peer_tree(machine), [float(x) for x in machine.gravity])

    def rates(y: Any) -> Any:
        return jnp.concatenate([y[len(y) // 2 :], accelerations(y[: len(y) // 2], y[len(y) // 2 :])])

    def step(_: int, y: Any) -> Any:
        k1 = rates(y)
        k2 = rates(y + 0.5 * STEP * k1)
        k3 = rates(y + 0.5 * STEP * k2)
        k4 = rates(y + STEP * k3)
        return y + STEP / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4)

    run = jax.jit(jax.vmap(lambda y: jax.lax.fori_loop(0, steps, step, y)))
    start = jax.device_put(np.concatenate([q, qd], axis=1))
    ends: list[Any] = []

    def work() -> None:
        ends[:] = [run(start).block_until_ready()]

    return seconds(work), np.asarray(ends[0])[:, : q.shape[1]]


def articulated_body(bodies: list[dict[str, Any]], gravity: list[float]) -> Callable[[Any, Any], Any]:
    """q̈ of a tree of single joints along z without forces; vectors are [ω; v] at the origin of each body's frame."""
    import jax.numpy as jnp

    def skew(a: Any) -> Any:
        return jnp.array([[0.0, -a[2], a[1]], [a[2], 0.0, -a[0]], [-a[1], a[0], 0.0]])

    def accelerations(q: Any, qd: Any) -> Any:
        X, S, V, C, inertia, bias = [], [], [], [], [], []
        for b in bodies:
            angle, rate = q[b["coordinate"]], qd[b["coordinate"]]
            R, p = jnp.array(b["A"]), jnp.array(b["P"])
            if b["sigma"] == 0:
                s, c = jnp.sin(angle), jnp.cos(angle)
                R = R @ jnp.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])
            else:
                p = p + R[:, 2] * angle
            E = R.T
            X.append(jnp.block([[E, jnp.zeros((3, 3))], [-E @ skew(p), E]]))
            S.append(jnp.array([0.0, 0.0, 1.0, 0.0, 0.0, 0.0] if b["sigma"] == 0 else [0.0] * 5 + [1.0]))
            v = S[-1] * rate + (X[-1] @ V[b["parent"]] if b["parent"] >= 0 else 0.0)
            V.append(v)
            w, u, along = v[:3], v[3:], S[-1] * rate
            turned = jnp.cross(w, along[:3])
            C.append(jnp.concatenate([turned, jnp.cross(u, along[:3]) + jnp.cross(w, along[3:])]))
            XX, XY, XZ, YY, YZ, ZZ, MX, MY, MZ, M = b["ten"]
            J, m = jnp.array([[XX, XY, XZ], [XY, YY, YZ], [XZ, YZ, ZZ]]), skew(jnp.array([MX, MY, MZ]))
            one = jnp.block([[J, m], [-m, M * jnp.eye(3)]])
            h = one @ v
            inertia.append(one)
            bias.append(jnp.concatenate([jnp.cross(w, h[:3]) + jnp.cross(u, h[3:]), jnp.cross(w, h[3:])]))
        U: list[Any] = [None] * len(bodies)
        D, left = list(U), list(U)
        for j in range(len(bodies) - 1, -1, -1):
            U[j] = inertia[j] @ S[j]
            D[j], left[j] = S[j] @ U[j], -S[j] @ bias[j]
            i = bodies[j]["parent"]
            if i >= 0:
                A = inertia[j] - jnp.outer(U[j], U[j]) / D[j]
                inertia[i] = inertia[i] + X[j].T @ A @ X[j]
                bias[i] = bias[i] + X[j].T @ (bias[j] + A @ C[j] + U[j] * (left[j] / D[j]))
        ground = jnp.concatenate([jnp.zeros(3), -jnp.array(gravity)])
        a: list[Any] = []
        found: list[Any] = [0.0] * len(bodies)
        for j, b in enumerate(bodies):
            felt = X[j] @ (a[b["parent"]] if b["parent"] >= 0 else ground) + C[j]
            found[b["coordinate"]] = (left[j] - U[j] @ felt) / D[j]
            a.append(felt + S[j] * found[b["coordinate"]])
        return jnp.stack(found)

    return accelerations


def measured(arms: int, steps: int) -> dict[str, float]:
    """Seconds of both, arm-steps a second, and how far the ends are apart."""
    rng, n = np.random.default_rng(SEED), arm().n
    q, qd = (scale * rng.normal(size=(arms, n)) for scale in ORIGINS)
    spent, ends = ours(q, qd, steps)
    found = {"arms": arms, "steps": steps, "seconds": spent, "million_steps_a_second": arms * steps / spent / 1e6}
    try:
        theirs, expected = in_jax(q, qd, steps)
    except ImportError:
        return found
    apart = np.abs(ends - expected)[:COMPARED].max() / np.abs(expected[:COMPARED]).max()
    return found | {"seconds_jax": theirs, "times_jax": theirs / spent, "largest_difference": float(apart)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--arms", type=int, default=100_000)
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    found = measured(asked.arms, asked.steps)
    if asked.json:
        print(json.dumps(found))
        return
    for name, value in found.items():
        print(f"{name:<26}{value:.4g}")


if __name__ == "__main__":
    main()
