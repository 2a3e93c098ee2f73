"""Functions of PyTorch's tensors: values of the dynamics, gradients of differences and of a plain recursion, shapes, steps and learning."""

from __future__ import annotations

import numpy as np
import pytest

import veridyn as vd
from batch_machines import MACHINES, arm, states
from studies.small_arm import small_arm
from veridyn.errors import DataError
from veridyn.mechanics.tree.dynamics.forward import forward_dynamics, mass_matrix
from veridyn.mechanics.tree.dynamics.inverse import inverse_dynamics, regressor
from veridyn.mechanics.tree.tree import Tree

torch = pytest.importorskip("torch")
vt = pytest.importorskip("veridyn.torch")
plain_recursion = pytest.importorskip("strangers.plain_recursion")
SAMPLES = 20


def tensors(machine, samples: int = SAMPLES, grad: bool = True) -> list:
    m = states(machine, samples)
    return [torch.tensor(x, requires_grad=grad) for x in (m.q, m.qd, m.qdd, m.forces)]


def parameters(machine):
    return torch.tensor(machine.parameters.values, requires_grad=True)


def base_of(machine, samples: int = SAMPLES):
    b = states(machine, samples).base
    if b is None:
        return None
    names = ("omega", "omega_dot", "acceleration", "velocity")
    return {n: torch.tensor(getattr(b, n)) for n in names if getattr(b, n) is not None}


@pytest.mark.parametrize("name", MACHINES)
def test_values_are_those_of_the_dynamics(name: str) -> None:
    machine = MACHINES[name]()
    m, base = states(machine, SAMPLES), base_of(machine)
    q, qd, qdd, forces = tensors(machine, grad=False)
    pairs = [
        (vt.inverse_dynamics(machine, q, qd, qdd, base=base), inverse_dynamics(machine, m)),
        (vt.mass_matrix(machine, q), mass_matrix(machine, m.q)),
        (vt.regressor(machine, q, qd, qdd, base=base), regressor(machine, m)),
        (vt.forward_dynamics(machine, q, qd, forces, base=base)[:, -machine.n :], forward_dynamics(machine, m).qdd),
    ]
    for found, expected in pairs:
        np.testing.assert_allclose(found.numpy(), expected, atol=1e-9 * np.abs(expected).max())


def test_gradients_are_those_of_a_plain_recursion_in_double_precision() -> None:
    """1e-10 of the largest of each, by states and all parameters; the recursion shares no code and is itself right."""
    machine = arm()
    plain = plain_recursion.PlainArm(machine, torch, torch.tensor)
    q, qd, qdd, weights = tensors(machine)
    leaves = [q, qd, qdd, parameters(machine)]
    theirs = plain.inverse_dynamics(*leaves)
    np.testing.assert_allclose(theirs.detach(), inverse_dynamics(machine, states(machine, SAMPLES)), atol=1e-10)
    expected = torch.autograd.grad(theirs, leaves, weights.detach())
    found = torch.autograd.grad(vt.inverse_dynamics(machine, *leaves), leaves, weights.detach())
    for a, b in zip(found, expected, strict=True):
        assert float((a - b).abs().max()) < 1e-10 * float(b.abs().max())


@pytest.mark.parametrize("kind", ["shared", "own", "sets"])
@pytest.mark.parametrize("quantity", ["inverse", "forward", "mass", "regressor", "kinematics"])
def test_gradients_are_those_of_differences(quantity: str, kind: str) -> None:
    machine = small_arm()
    q, qd, qdd, _ = tensors(machine, 3)
    p = parameters(machine).detach()
    phi = {
        "shared": p,
        "own": torch.linspace(0.9, 1.1, 3).double()[:, None] * p,
        "sets": torch.stack([p, 1.2 * p])[:, None],
    }
    phi = phi[kind].requires_grad_()
    laws = {
        "inverse": (lambda *x: vt.inverse_dynamics(machine, *x), (q, qd, qdd, phi)),
        "forward": (lambda *x: vt.forward_dynamics(machine, *x), (q, qd, qdd, phi)),
        "mass": (lambda *x: vt.mass_matrix(machine, *x), (q, phi)),
        "regressor": (lambda *x: vt.regressor(machine, *x), (q, qd, qdd)),
        "kinematics": (lambda x: vt.forward_kinematics(machine, x, ["1", "2"]), (q,)),
    }
    law, given = laws[quantity]
    assert torch.autograd.gradcheck(law, given, eps=1e-6, atol=1e-6, rtol=1e-6)


def test_poses_are_those_of_the_links() -> None:
    machine = small_arm()
    pose = vt.forward_kinematics(machine, torch.tensor([[0.3, 0.2]]).double(), ["1"])[0, 0]
    c, s = np.cos(0.3), np.sin(0.3)
    np.testing.assert_allclose(pose, [[c, -s, 0.0, 0.0], [s, c, 0.0, 0.0], [0.0, 0.0, 1.0, 0.3]], atol=1e-7)


def test_tensors_are_read_by_stride_and_leading_dimensions_broadcast() -> None:
    machine = small_arm()
    q, qd, qdd, _ = tensors(machine, 12, grad=False)
    p = parameters(machine).detach()
    expected = vt.inverse_dynamics(machine, q, qd, qdd, p)
    turned = [x.T.contiguous().T for x in (q, qd, qdd)]
    assert torch.equal(vt.inverse_dynamics(machine, *turned, p), expected)
    four = [x.reshape(2, 2, 3, 2) for x in (q, qd, qdd)]
    assert torch.equal(vt.inverse_dynamics(machine, *four, p).reshape(12, 2), expected)
    scale = torch.tensor([[[1.0]], [[2.0]]]).double()[
        :, None
    ]  # (2, 1, 1, 1): no cut in two of (2, 2, 3) with (2, 1, 3)
    mixed = vt.inverse_dynamics(machine, four[0], four[1][:, :1] * 0 + four[1], four[2], scale * p)
    torch.testing.assert_close(mixed[0].reshape(6, 2), expected[:6])
    assert vt.inverse_dynamics(machine, q[:0], qd[:0], qdd[:0], p).shape == (0, 2)
    assert torch.equal(vt.inverse_dynamics(machine, q[0], qd[0], qdd[0], p), expected[0])


def test_gradients_repeat_to_the_last_bit() -> None:
    machine = small_arm()
    q, qd, qdd, _ = tensors(machine, 2000, grad=False)
    p = parameters(machine)
    first, second = (torch.autograd.grad(vt.inverse_dynamics(machine, q, qd, qdd, p).sum(), p)[0] for _ in range(2))
    assert torch.equal(first, second)


def test_a_run_is_that_of_an_integrator_and_its_gradient_that_of_differences() -> None:
    machine = arm()
    p, still = parameters(machine), torch.zeros((20, 7), dtype=torch.float64)
    m = states(machine, 1)
    start = torch.tensor(0.3 * m.q[0]), torch.tensor(0.3 * m.qd[0])
    q, qd = vt.run(machine, *start, still, 1e-3, p)
    true = vd.dynamics.integrate(machine, np.linspace(0.0, 0.02, 21), start[0].numpy(), start[1].numpy()).motion
    np.testing.assert_allclose(q.detach(), true.q, atol=1e-6)
    gradient = torch.autograd.grad(q[-1].sum() + qd[-1].sum(), p)[0]
    direction = 1e-5 * torch.tensor(np.random.default_rng(8).normal(size=len(p))) * p.detach()
    with torch.no_grad():
        ends = [sum(x[-1].sum() for x in vt.run(machine, *start, still, 1e-3, p + s * direction)) for s in (1, -1)]
    assert float(gradient @ direction) == pytest.approx(float(ends[0] - ends[1]) / 2.0, rel=1e-6)


def test_draws_of_a_fit_are_a_batch_of_parameters() -> None:
    machine = small_arm()
    draws = machine.parameters.values * np.random.default_rng(1).uniform(0.9, 1.1, size=(7, 1))
    q, qd, qdd, _ = tensors(machine, 5, grad=False)
    found = vt.inverse_dynamics(machine, q, qd, qdd, torch.tensor(draws)[:, None])
    m = states(machine, 5)
    assert found.shape == (7, 5, 2)
    np.testing.assert_allclose(found[3], inverse_dynamics(machine, m, parameters=draws[3]), atol=1e-12)


def test_what_is_no_double_or_lacks_a_base_is_refused_by_name() -> None:
    machine = small_arm()
    q, qd, qdd, _ = tensors(machine, 3)
    with pytest.raises(DataError, match=r"'qd'.*\n?.*doubles on one device(.|\n)*torch\.float32"):
        vt.inverse_dynamics(machine, q, qd.float(), qdd)
    car = MACHINES["20-dof car"]()
    with pytest.raises(DataError, match="motion of the base"):
        vt.inverse_dynamics(car, *tensors(car, 3)[:3])
    with pytest.raises(DataError, match="fixed base"):
        vt.step(car, *tensors(car, 3)[:3], 1e-3)
    assert isinstance(machine, vd.Machine) and not isinstance(machine, Tree)
