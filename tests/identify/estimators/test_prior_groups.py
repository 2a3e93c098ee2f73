"""Groups of parameters, and zeros that a drawing does not mean."""

from __future__ import annotations

import numpy as np
import pytest

from identify.smooth_arm import clean, noisy, truth
from veridyn.errors import IdentificationError
from veridyn.identify.estimate import identify
from veridyn.identify.estimators.prior import Prior, prior_moments
from veridyn.identify.estimators.prior_groups import group_of, unstated
from veridyn.model.element_laws import law
from veridyn.model.elements import offset, spring, stribeck


def with_more():
    return truth().with_elements([offset("q1", 0.0), offset("q2", 0.3), spring("q3", 0.0)])


def test_groups_of_parameters() -> None:
    machine = with_more()
    found = dict(zip(machine.parameters.names, group_of(machine), strict=True))
    assert (found["XX1"], found["MY2"], found["M3"]) == ("inertia", "inertia", "mass")
    assert (found["fs_q1"], found["h_q4"], found["off_q1"], found["k_q3"]) == (
        "friction",
        "friction",
        "offset",
        "other",
    )


def test_zeros_of_friction_and_offsets_are_not_believed() -> None:
    """A URDF without friction: the prior's deviation is ten typical sizes, whatever its scale, and other zeros stay what they are."""
    machine = with_more()
    p = machine.parameters
    machine = machine.with_parameters(p.replacing({"fs_q1": 0.0, "h_q2": 0.0}))
    free = {n for n, f in zip(p.names, unstated(machine, machine.parameters.values), strict=True) if f}
    assert free == {"fs_q1", "h_q2", "off_q1"}
    names = [p.names[k] for k in p.select("estimated")]
    _, deviation = prior_moments(machine, Prior(relative=1e-3))
    sigma = dict(zip(names, deviation, strict=True))
    assert sigma["fs_q1"] == pytest.approx(10.0 * p.typical[p.index("fs_q1")])
    assert sigma["off_q2"] == pytest.approx(0.3e-3) and sigma["k_q3"] == pytest.approx(
        1e-3 * p.typical[p.index("k_q3")]
    )
    _, named = prior_moments(machine, Prior(sigma={"fs_q1": 0.01}))
    assert named[names.index("fs_q1")] == 0.01


def test_friction_without_a_value_is_unknown_and_a_body_without_one_is_refused() -> None:
    """A Stribeck curve, a law of the speed and an offset that nobody gave a value; a prior for a spring or a body must have one."""
    added = [stribeck("q1", 0.1), law("q1", "v*abs(v)", name="hq_q1", unit="N*m*s^2/rad^2"), offset("q3")]
    machine = truth().with_elements(added)
    p = machine.parameters
    names = [p.names[k] for k in p.select("estimated")]
    mean, deviation = prior_moments(machine, Prior(relative=1e-3, values={"off_q3": 0.2}))
    for name in ("fst_q1", "hq_q1"):
        k = names.index(name)
        assert mean[k] == 0.0 and deviation[k] == pytest.approx(10.0 * p.typical[p.index(name)])
    assert mean[names.index("off_q3")] == 0.2 and deviation[names.index("off_q3")] == pytest.approx(2e-4)
    with pytest.raises(IdentificationError, match="these parameters have none: k_q3"):
        prior_moments(machine.with_elements([spring("q3")]), Prior())
    with pytest.raises(IdentificationError, match="these parameters have none: M2"):
        prior_moments(machine.with_parameters(p.replacing({"M2": np.nan})), Prior())


def test_friction_is_found_though_the_drawing_says_zero() -> None:
    """With bodies believed to .1 % and friction of zero in the drawing, dry friction comes out within four deviations of the truth."""
    machine, p = truth(), truth().parameters
    zero = {e.parameter_name: 0.0 for e in machine.elements}
    fit = identify(
        machine.with_parameters(p.replacing(zero)), noisy(np.random.default_rng(0), clean()), Prior(relative=1e-3)
    )
    off = (fit.values - fit.base.reduce(p.values)) / fit.sigma
    at = [k for k, name in enumerate(fit.names) if name.startswith(("fs_", "h_"))]
    assert len(at) == 8 and np.abs(off[at]).max() < 4.0 and (fit.values[at] > 0.0).all()


def test_scales_by_group_and_unknown_groups() -> None:
    prior = Prior(relative=0.5, groups={"mass": 0.1, "friction": 2.0})
    assert [prior.relative_of(g) for g in ("mass", "friction", "inertia")] == [0.1, 2.0, 0.5]
    _, deviation = prior_moments(truth(), prior)
    names = list(truth().parameters.names)
    assert deviation[names.index("M2")] == pytest.approx(0.4) and deviation[names.index("fs_q2")] == pytest.approx(2.4)
    with pytest.raises(IdentificationError, match=r"Prior\.groups: there is no group 'masses'[\s\S]*mass"):
        identify(truth(), clean(), Prior(groups={"masses": 0.1}))
