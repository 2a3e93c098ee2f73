"""Machines as they move in a page: gauges have the numbers of the trace, also in a real browser, and every kind of machine is drawn."""

import json

import numpy as np
import pytest

from report.browser import drive
from studies.small_arm import small_study
from veridyn.report.identification import identification_page
from veridyn.report.motion import FRAMES, frames_of, joint_gauges, machine_animation, replay_section


@pytest.fixture(scope="module")
def study():
    return small_study()


def test_gauges_have_the_forces_of_their_joints(study):
    trace, kept = study.traces["validation"], frames_of(study.validation.t)
    gauges = joint_gauges(study.fit.described, trace, kept, {r.row: r.rms for r in study.fit.rows})
    assert [g.label for g in gauges] == [r for r in trace.rows if r in study.fit.described.coordinates]
    for g in gauges:
        k = trace.rows.index(g.label)
        assert np.array_equal(g.measured, trace.measured[kept, k], equal_nan=True)
        made = g.payload()
        assert np.array(made["predicted"]) * made["size"] == pytest.approx(g.predicted, abs=1e-4 * made["size"])
        assert g.noise == pytest.approx(next(r.rms for r in study.fit.rows if r.row == g.label))


def test_the_scene_is_small_and_keeps_the_clock(study):
    (animation,) = replay_section(study).blocks
    scene = animation.scene
    assert len(scene.t) <= FRAMES and scene.t[0] == study.validation.t[0] and scene.t[-1] == study.validation.t[-1]
    assert all(len(g.measured) == len(scene.t) for g in scene.gauges)
    assert len(json.dumps(json.loads(scene.payload()))) < 200_000


def test_in_a_browser_the_numbers_beside_the_machine_are_those_of_the_frame(study, tmp_path):
    page = identification_page(study, study.result("small", seed=0, quick=True, inputs={}), "veridyn identify")
    script = """
    const figure = document.querySelector("figure.player"), slider = figure.querySelector("input[type=range]");
    slider.value = 40; slider.dispatchEvent(new Event("input"));
    return all("[data-gauge]", figure).map((c) => +c.textContent.replace("−", "-"));
    """
    found = np.array(drive(page, script, tmp_path)).reshape(-1, 3)
    scene = replay_section(study).blocks[0].scene
    for row, g in zip(found, scene.gauges, strict=True):
        size = max(np.abs(g.measured).max(), np.abs(g.predicted).max())
        expected = [g.measured[40], g.predicted[40], g.measured[40] - g.predicted[40]]
        assert row == pytest.approx(expected, rel=6e-3, abs=2e-3 * size)


def test_machines_of_several_motions_share_the_clock_and_the_last_has_bodies(study):
    motion, machine = study.validation, study.fit.described
    made = machine_animation(machine, motion.t, {"measured": motion.q, "simulated": motion.q}, "Both.")
    measured, simulated = made.scene.layers
    assert (measured.meaning, simulated.meaning) == ("measured", "estimate")
    assert not measured.solids and simulated.solids and "ellipsoid" in made.caption
    assert len(made.scene.t) == len(measured.points) <= FRAMES
