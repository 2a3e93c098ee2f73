"""Tables 5 to 8 on a page: every number that was found stands there, beside the thesis'."""

import numpy as np

from veridyn.papers.buggy.drive import BuggyDrive, BuggyTruth
from veridyn.papers.buggy.ground import GroundRun
from veridyn.papers.buggy.machine import buggy
from veridyn.papers.buggy.observers import QUANTITIES, Scored
from veridyn.papers.buggy.page_sections import (
    CROSS,
    OTHERS,
    RING,
    band_layer,
    both,
    coarse_blocks,
    coarse_lead,
    fixes_layer,
    ground_blocks,
    ground_lead,
    input_blocks,
    printed_blocks,
    sawtooth,
    table_of,
)
from veridyn.papers.buggy.state_figures import STATES
from veridyn.papers.buggy.trials import NAMES, InputRun
from veridyn.report.blocks import Table

T = np.arange(0.0, 2.0, 0.002)
FLAT = np.zeros((3, 4))


def made(size: float) -> Scored:
    """Errors of `size` times a sine, in all states, with a deviation of twice that."""
    names = tuple(STATES.values())
    errors = size * np.sin(2.0 * np.pi * T)[:, None] * np.ones(len(names))
    return Scored(T, names, errors, np.full_like(errors, 2.0 * size), 1.0)


def drive(pressure: bool = False) -> BuggyTruth:
    """Along x at a metre a second."""
    q, qd = np.zeros((len(T), 7)), np.zeros((len(T), 6))
    q[:, 0], qd[:, 0] = T, 1.0
    force = 0.0 * T
    return BuggyTruth(buggy(), BuggyDrive(duration=2.0), T, q, qd, qd, qd[:, :0], force, force if pressure else None)


def ground() -> GroundRun:
    scores = {name: made(0.1 * (k + 1)) for k, name in enumerate(("plain", *OTHERS, "ekf"))}
    return GroundRun(FLAT, drive(), drive(), scores, scores, 0.5)


def test_cells_are_rms_and_largest_error():
    assert both((0.0123, 0.456)) == "0.012 (0.46)" and both(None) == "–"
    score = made(1.0)
    table = table_of({"one": lambda q: (score.rms(q), score.largest(q))}, "caption")
    assert len(table.rows) == len(QUANTITIES) and table.rows[0] == ("x, m", "0.71 (1)")  # of a sine
    assert dict(table.rows)["yaw, mrad"] == "710 (1000)"


def test_the_sawtooth_is_the_variance_of_the_last_tenth_of_a_second():
    plots = sawtooth({name: [made(0.5)] for name in ("error_ekf", "force", "ekf")})
    assert plots[0].title == "errorEKF: variance of x" and len(plots) == 3


def test_tables_7_and_8_stand_beside_the_thesis():
    run = ground()
    fine, coarse = ground_blocks(run)[0], coarse_blocks(run)[0]
    assert isinstance(fine, Table) and isinstance(coarse, Table)
    assert fine.rows[0][1] == "0.008 (0.12)" and coarse.rows[0][1] == "0.071 (0.43)"  # Tables 7 and 8, x
    assert fine.rows[-1][1] == "–"  # the thesis has no wheel speeds there
    assert fine.columns[2] == "model alone" and fine.rows[0][2] == "0.071 (0.1)"
    assert "2 mm off" in ground_lead(run) and "0.5 m and 2°" in coarse_lead(run)


def test_inputs_and_rows_as_printed():
    scores = {name: made(0.1) for name in NAMES}
    table, figure = input_blocks(InputRun(drive(pressure=True), scores, scores))
    assert isinstance(table, Table) and len(table.columns) == 1 + 6
    assert "measured inputs" in table.columns[2] and figure is not None
    (printed,) = printed_blocks({name: made(0.1) for name in ("full", "116", "89", "both")})
    assert isinstance(printed, Table) and printed.columns[1:] == ("H the derivative of h", "(116)", "(89)", "both")


def test_a_fix_appears_when_it_is_heard():
    heard, fixes = np.array([0.0, 1.0, 2.0]), np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [2.0, 1.0, 0.0]])
    layer = fixes_layer(np.array([0.0, 1.5, 2.0]), heard, fixes, "GPS")
    assert layer.points.shape == (3, 12, 3) and len(layer.segments) == 6
    middles = layer.points.reshape(3, 3, 4, 3).mean(axis=2)
    np.testing.assert_allclose(middles, [fixes[[0, 0, 0]], fixes[[0, 1, 1]], fixes])
    for a, b in layer.segments:
        np.testing.assert_allclose(np.linalg.norm(layer.points[:, a] - layer.points[:, b], axis=1), 2.0 * CROSS)


def test_a_band_is_an_ellipse_of_so_many_deviations():
    """(x − p)ᵀ C⁻¹ (x − p) is the square of the deviations at every corner."""
    C = np.array([[[4.0, 1.0], [1.0, 2.0]], [[1.0, 0.0], [0.0, 9.0]]])
    p = np.array([[1.0, 2.0, 3.0], [0.0, 0.0, 0.5]])
    layer = band_layer(p, C, 3.0, "band")
    assert layer.points.shape == (2, RING, 3)
    d = layer.points[:, :, :2] - p[:, None, :2]
    np.testing.assert_allclose(np.einsum("nki,nij,nkj->nk", d, np.linalg.inv(C), d), 9.0)
    np.testing.assert_allclose(layer.points[:, :, 2], p[:, 2:] * np.ones(RING))
