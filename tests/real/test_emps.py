"""A positioning axis as measured (EMPS), by the published recipe, against the published values.

Janot, Gautier, Brunot: Data set and reference models of EMPS, Workshop on Nonlinear System Identification Benchmarks, 2019.
"""

import numpy as np
import pytest

import veridyn as vd
from real_logs import folder

PUBLISHED = {"M1": (95.1089, 0.1085), "Fv": (203.5034, 1.1460), "Fc": (20.3935, 0.1012), "off": (-3.1648, 0.0444)}
# The recipe says to decimate and not by which filter. Order 8 at 0.9 of the new Nyquist frequency comes nearest to the
# usual one, a Chebyshev filter of order 8 up to 0.8 of it, which gives condition 26.01, errors 4.04 % and 5.95 %. Where the
# filter halves matters: from 40 to 50 Hz the condition goes from 26.04 to 26.03, the cross-validation from 5.76 to 6.09 %.
SAMPLING = vd.Sampling(filter=vd.Butterworth(45.0, order=8), decimate=10, trim=49)
SIGNALS = vd.Signals(lowpass=100.0, derivative="central")


def load(name):
    """Position and control voltage. The pulses of the second file are not added, as in the published cross-validation."""
    columns = {"q.q1": "qm", "signal.vir": "vir"}
    return vd.load_log(folder("emps") / name, columns, {"t": "s", "qm": "m", "vir": "V"})


def axis(gain):
    """One sliding joint; force = gain × voltage, the gain known."""
    elements = [
        vd.damper("q1", name="Fv"),
        vd.coulomb("q1", name="Fc"),
        vd.offset("q1", name="off"),
        vd.Element("drive_gain", {"q1": 1.0}, gain, "gtau", "vir", unit="N/V"),
    ]
    tree = vd.Tree.build([vd.Body("1", joint="sliding")], name="EMPS", gravity=(0.0, 0.0, 0.0), elements=elements)
    return tree.with_parameters(tree.parameters.known(["gtau"]))


@pytest.fixture(scope="module")
def fitted():
    log = load("DATA_EMPS.mat")
    tree = axis(float(log.notes["gtau"]))
    with pytest.warns(vd.DataWarning, match=r"second derivative by 'central' differences is biased"):
        moved = vd.motion(tree, log, SIGNALS)
    return tree, vd.identify(tree, moved, estimator="ols", sampling=SAMPLING)


def test_the_four_parameters_lie_within_one_published_deviation(fitted):
    _, fit = fitted
    print(fit.summary())
    assert fit.names == tuple(PUBLISHED)
    for name, value, sigma in zip(fit.names, fit.values, fit.sigma, strict=True):
        published, deviation = PUBLISHED[name]
        assert abs(value - published) < deviation, name
        assert sigma == pytest.approx(deviation, rel=0.03), name


def test_condition_and_relative_error_are_the_published_ones(fitted):
    _, fit = fitted
    assert fit.condition == pytest.approx(25.99, abs=0.05)
    assert 100.0 * fit.rows[0].relative_error == pytest.approx(4.08, abs=0.1)


def test_cross_validation_on_the_file_with_pulses(fitted):
    tree, fit = fitted
    with pytest.warns(vd.DataWarning, match=r"biased"):
        other = vd.motion(tree, load("DATA_EMPS_PULSES.mat"), SIGNALS)
    error = 100.0 * vd.validate(fit, other, sampling=SAMPLING).relative_error
    print(f"EMPS: cross-validation {error:.3f} % (published 5.98 %)")
    assert error == pytest.approx(5.98, abs=0.1)


def test_derivatives_without_bias_move_the_mass_down(fitted):
    """What the warning is about: central differences damp accelerations, so that the mass comes out too large, if little."""
    tree, fit = fitted
    log = load("DATA_EMPS.mat")
    better = vd.identify(tree, vd.motion(tree, log, vd.Signals(lowpass=100.0)), estimator="ols", sampling=SAMPLING)
    print(f"EMPS: mass {fit.values[0]:.3f} kg by central, {better.values[0]:.3f} kg by compensated differences")
    assert 0.0 < fit.values[0] - better.values[0] < fit.sigma[0]
    assert np.abs(better.values[1:] - fit.values[1:]).max() < 0.2
