"""Masses and friction of an arm learned by gradient through ``veridyn.torch``, beside least squares: ``python examples/learn_arm.py``.

Links are of even density and known shape, so that all ten parameters of a link grow with its mass: φ = A θ with θ three masses and six
coefficients of friction. The loss is the mean square of torque errors; L-BFGS knows nothing of the model but its gradient.
"""

from __future__ import annotations

from math import pi

import numpy as np
import torch

import veridyn as vd
import veridyn.torch as vt
from veridyn.elements import coulomb, damper
from veridyn.model import Body

SAMPLES, NOISE = 2000, 0.05  # N·m


def arm() -> vd.Machine:
    """Three turning joints; every link weighs 1 kg here, so that a column of A is a link's parameters."""
    from_centre = vd.spatial.from_centre
    places = [("1", "ground", vd.spatial.MDH(r=0.3)), ("2", "1", vd.spatial.MDH(alpha=pi / 2, d=0.1))]
    places.append(("3", "2", vd.spatial.MDH(d=0.4)))
    bodies = [Body(name, antecedent, "turning", at) for name, antecedent, at in places]
    shapes = {name: from_centre(1.0, [0.2, 0.01, 0.02], np.diag([0.003, 0.02, 0.018])) for name, _, _ in places}
    friction = [law(f"q{k}", 1.0) for k in (1, 2, 3) for law in (damper, coulomb)]
    return vd.Machine.of_bodies(bodies, name="arm", inertia=shapes, elements=friction)


def columns(machine: vd.Machine) -> np.ndarray:
    """A (p, 9) with φ = A θ: masses of the three links, then the friction of each joint."""
    p = machine.parameters
    A = np.zeros((len(p), 9))
    for k in range(3):
        A[10 * k : 10 * k + 10, k] = p.values[10 * k : 10 * k + 10]
    A[30:, 3:] = np.eye(6)
    return A


def main() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """θ that was learned, θ of least squares, and the truth."""
    machine, rng = arm(), np.random.default_rng(1)
    A, truth = columns(machine), np.array([4.0, 3.0, 1.5, 1.5, 0.8, 0.9, 0.5, 0.4, 0.2])
    q, qd, qdd = (torch.tensor(scale * rng.normal(size=(SAMPLES, 3))) for scale in (1.0, 1.5, 3.0))
    clean = vt.inverse_dynamics(machine, q, qd, qdd, torch.tensor(A @ truth))
    measured = clean + NOISE * torch.tensor(rng.normal(size=(SAMPLES, 3)))

    theta = torch.ones(9, dtype=torch.float64, requires_grad=True)
    optimiser = torch.optim.LBFGS(
        [theta],
        max_iter=200,
        history_size=20,
        tolerance_grad=1e-12,
        tolerance_change=0.0,
        line_search_fn="strong_wolfe",
    )

    def loss() -> torch.Tensor:
        optimiser.zero_grad()
        error = vt.inverse_dynamics(machine, q, qd, qdd, torch.tensor(A) @ theta) - measured
        value = error.square().mean()
        value.backward()
        return value

    optimiser.step(loss)
    learned = theta.detach().numpy()
    D = vt.regressor(machine, q, qd, qdd).numpy().reshape(-1, len(A)) @ A
    solved = np.linalg.lstsq(D, measured.numpy().ravel(), rcond=None)[0]
    for name, values in (("truth", truth), ("learned", learned), ("least squares", solved)):
        print(f"{name:<14}", " ".join(f"{x:8.4f}" for x in values))
    print(f"learned and solved differ by at most {np.abs(learned - solved).max():.1e}")
    return learned, solved, truth


if __name__ == "__main__":
    main()
