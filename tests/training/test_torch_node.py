"""The node in PyTorch's graph: its operators, torch.func, torch.compile, and the derivatives that are refused."""

from __future__ import annotations

import pytest

from batch_machines import states
from studies.small_arm import small_arm
from veridyn.errors import DataError
from veridyn.mechanics.tree.dynamics.differentiable import machine_function

torch = pytest.importorskip("torch")
vt = pytest.importorskip("veridyn.torch")
node = pytest.importorskip("veridyn.training.torch_node")
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:torch")
MACHINE = small_arm()
P = torch.tensor(MACHINE.parameters.values)
Q, QD, QDD = (torch.tensor(x) for x in (states(MACHINE, 6).q, states(MACHINE, 6).qd, states(MACHINE, 6).qdd))


def law(*given):
    return vt.inverse_dynamics(MACHINE, *given)


@pytest.mark.filterwarnings("ignore")  # of torch about itself
@pytest.mark.parametrize("quantity", ["inverse", "regressor"])
def test_operators_are_what_they_declare(quantity: str) -> None:
    """Schemas, shapes and strides for tracers, and tracing itself."""
    function = machine_function(MACHINE, quantity)
    arrays = [Q[None], QD[None], QDD[None], P[None, None] if function.parameters else P.new_empty((1, 1, 0))]
    weights = torch.ones((1, 6, len(function.outputs)), dtype=torch.float64)
    utils = ("test_schema", "test_autograd_registration", "test_faketensor", "test_aot_dispatch_static")
    key = node.known(function)
    torch.library.opcheck(node.function_op, (key, arrays), test_utils=utils)
    wanted = [True, False, True, bool(function.parameters)]
    torch.library.opcheck(node.product_op, (key, arrays, weights, wanted), test_utils=utils)


def test_mapped_calls_are_single_ones_side_by_side() -> None:
    vmap = torch.func.vmap
    expected = law(Q, QD, QDD, P)
    sets = torch.stack([P, 1.1 * P, 0.9 * P])
    assert torch.equal(vmap(law, (0, 0, 0, None))(Q, QD, QDD, P), expected)
    assert torch.equal(vmap(law, (1, 1, 1, None))(Q.T, QD.T, QDD.T, P), expected)
    every = law(Q, QD, QDD, sets[:, None])
    torch.testing.assert_close(vmap(law, (None, None, None, 0))(Q, QD, QDD, sets), every)
    twice = vmap(lambda p: vmap(law, (0, 0, 0, None))(Q, QD, QDD, p))(sets)
    torch.testing.assert_close(twice, every)
    nested = vmap(lambda q: law(q, QD, QDD, sets[:, None]))(torch.stack([Q, 2.0 * Q]))
    torch.testing.assert_close(nested[1], law(2.0 * Q, QD, QDD, sets[:, None]))


def test_jacobians_and_gradients_of_each_sample() -> None:
    func = torch.func
    jacobian = func.vmap(func.jacrev(law, argnums=3), (0, 0, 0, None))(Q, QD, QDD, P)
    torch.testing.assert_close(jacobian, vt.regressor(MACHINE, Q, QD, QDD))
    each = func.vmap(func.grad(lambda q, p: law(q, QD[0], QDD[0], p).square().sum(), argnums=(0, 1)), (0, None))(Q, P)
    for k in (0, 5):
        q, p = Q[k].clone().requires_grad_(), P.clone().requires_grad_()
        expected = torch.autograd.grad(law(q, QD[0], QDD[0], p).square().sum(), (q, p))
        torch.testing.assert_close((each[0][k], each[1][k]), expected)


@pytest.mark.filterwarnings("ignore")
def test_a_compiled_program_has_it_in_its_graph() -> None:
    def loss(q, p):
        return law(q, QD, QDD, p).square().mean()

    compiled = torch.compile(loss, backend="aot_eager", fullgraph=True)
    found = []
    for work in (loss, compiled):
        q, p = Q.clone().requires_grad_(), P.clone().requires_grad_()
        work(q, p).backward()
        found.append((q.grad, p.grad))
    torch.testing.assert_close(found[1], found[0])


def test_only_what_needs_a_gradient_is_made() -> None:
    asked = []
    plain = node.product_op

    def noting(key, arrays, weights, wanted):
        asked.append(tuple(wanted))
        return plain(key, arrays, weights, wanted)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(node, "product_op", noting)
        law(Q, QD, QDD, P.clone().requires_grad_()).sum().backward()
    assert asked == [(False, False, False, True)]


def test_derivatives_of_derivatives_are_refused_by_name() -> None:
    q = Q.clone().requires_grad_()
    slope = torch.autograd.grad(law(q, QD, QDD, P).sum(), q, create_graph=True)[0]
    with pytest.raises(DataError, match="second derivatives"):
        slope.sum().backward()
    with pytest.raises(DataError, match="second derivatives"):
        torch.func.grad(lambda a: torch.func.grad(lambda b: law(b, QD[0], QDD[0], P).sum())(a).sum())(Q[0])
    with pytest.raises(NotImplementedError, match="forward mode"):  # of PyTorch itself
        torch.func.jacfwd(lambda a: law(a, QD[0], QDD[0], P))(Q[0])
