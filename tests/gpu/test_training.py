"""Nodes of training graphs on a GPU, where there is one: the processor's numbers, strides, CUDA graphs, and JAX. Skipped elsewhere."""

from __future__ import annotations

import numpy as np
import pytest

from batch_machines import MACHINES, arm, states
from veridyn.errors import DeviceError
from veridyn.mechanics.tree.dynamics.inverse import inverse_dynamics
from veridyn.training.card import driver

try:
    driver()
except DeviceError as error:
    pytest.skip(f"{error.faults[0].what}", allow_module_level=True)

torch = pytest.importorskip("torch")
vt = pytest.importorskip("veridyn.torch")
SAMPLES = 1000


def leaves(device: str, kind: str, layout: str = "rows") -> list:
    m, p = states(arm(), SAMPLES), arm().parameters.values
    phi = {"shared": p, "own": np.linspace(0.9, 1.1, SAMPLES)[:, None] * p, "sets": np.stack([p, 1.2 * p])[:, None]}[
        kind
    ]
    given = [torch.tensor(x, device=device) for x in (m.q, m.qd, m.qdd, phi)]
    if layout == "columns":
        given = [x.T.contiguous().T if x.ndim == 2 else x for x in given]
    return [x.requires_grad_() for x in given]


def law(quantity: str):
    m = arm()
    return {
        "inverse": lambda q, qd, qdd, p: vt.inverse_dynamics(m, q, qd, qdd, p),
        "forward": lambda q, qd, qdd, p: vt.forward_dynamics(m, q, qd, qdd, p),
        "mass": lambda q, qd, qdd, p: vt.mass_matrix(m, q, p),
        "regressor": lambda q, qd, qdd, p: vt.regressor(m, q, qd, qdd) * p.sum(),
    }[quantity]


@pytest.mark.parametrize("layout", ["rows", "columns"])
@pytest.mark.parametrize("kind", ["shared", "own", "sets"])
@pytest.mark.parametrize("quantity", ["inverse", "forward", "mass"])
def test_values_and_gradients_are_those_of_the_processor(quantity: str, kind: str, layout: str) -> None:
    found = []
    for device in ("cpu", "cuda"):
        given = leaves(device, kind, layout)
        y = law(quantity)(*given)
        wanted = [x for x in given if quantity != "mass" or x is given[0] or x is given[3]]
        found.append([y.detach(), *torch.autograd.grad(torch.sin(y).sum(), wanted)])
    for a, b in zip(*found, strict=True):
        assert float((a - b.cpu()).abs().max()) < 1e-9 * float(a.abs().max())


def test_a_regressor_and_a_car() -> None:
    car = MACHINES["20-dof car"]()
    m = states(car, SAMPLES)
    base = {n: torch.tensor(getattr(m.base, n), device="cuda") for n in ("omega", "omega_dot", "acceleration")}
    q, qd, qdd = (torch.tensor(x, device="cuda") for x in (m.q, m.qd, m.qdd))
    gamma = vt.inverse_dynamics(car, q, qd, qdd, base=base).cpu().numpy()
    expected = inverse_dynamics(car, m)
    np.testing.assert_allclose(gamma, expected, atol=1e-12 * np.abs(expected).max())
    D = vt.regressor(car, q, qd, qdd, base=base).cpu().numpy()
    np.testing.assert_allclose(D @ car.parameters.values, expected, atol=1e-11 * np.abs(expected).max())


def test_gradients_repeat_to_the_last_bit() -> None:
    given = leaves("cuda", "shared")
    first, second = (torch.autograd.grad(law("inverse")(*given).sum(), given) for _ in range(2))
    assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True))


def test_another_stream_and_a_captured_graph() -> None:
    given = leaves("cuda", "shared")
    expected = torch.autograd.grad(law("inverse")(*given).sum(), given)
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        found = torch.autograd.grad(law("inverse")(*given).sum(), given)
    side.synchronize()
    assert all(torch.equal(a, b) for a, b in zip(found, expected, strict=True))
    captured = torch.cuda.CUDAGraph()
    with torch.cuda.graph(captured):
        found = torch.autograd.grad(law("inverse")(*given).sum(), given)
    captured.replay()
    torch.cuda.synchronize()
    assert all(torch.equal(a, b) for a, b in zip(found, expected, strict=True))


def test_mapped_calls_and_compiled_programs() -> None:
    q, qd, qdd, p = (x.detach() for x in leaves("cuda", "shared"))
    expected = law("inverse")(q, qd, qdd, p)
    assert torch.equal(torch.func.vmap(law("inverse"), (0, 0, 0, None))(q, qd, qdd, p), expected)


def test_jax_has_the_numbers_of_the_processor() -> None:
    jax = pytest.importorskip("jax")
    vj = pytest.importorskip("veridyn.jax")
    jax.config.update("jax_enable_x64", True)
    if jax.default_backend() != "gpu":
        pytest.skip("JAX has no GPU")
    m, p = states(arm(), SAMPLES), arm().parameters.values

    def loss(*given):
        return jax.numpy.sin(vj.inverse_dynamics(arm(), *given)).sum()

    found = []
    for device in (jax.devices("cpu")[0], jax.devices("gpu")[0]):
        given = [jax.device_put(x, device) for x in (m.q, m.qd, m.qdd, p)]
        found.append([np.asarray(x) for x in jax.jit(jax.grad(loss, argnums=(0, 1, 2, 3)))(*given)])
    for a, b in zip(*found, strict=True):
        np.testing.assert_allclose(b, a, atol=1e-10 * np.abs(a).max())
