"""The identified machine in the page: its numbers are Python's, it falls as an independent integration says, and large ones stay out."""

import re
from dataclasses import replace

import numpy as np
import pytest

import veridyn as vd
from live.chromium import Chromium
from studies.small_arm import small_arm, small_study
from veridyn.inference.verdict import Verdict
from veridyn.mechanics.tree.dynamics.forward import forward_dynamics
from veridyn.mechanics.tree.recursion.kinematics import body_pose
from veridyn.model.motion import Motion
from veridyn.report import running
from veridyn.report.blocks import Section, Text
from veridyn.report.motion import replay_section
from veridyn.report.page import page
from veridyn.report.running import running_machine, running_section
from veridyn.signals.trajectory import FourierTrajectory, JointLimits
from veridyn.studies.result import Result


@pytest.fixture(scope="module")
def study():
    return small_study()


def test_a_machine_without_lengths_is_named_and_keeps_its_numbers(study, monkeypatch):
    """A joint of which neither a length nor a centre of mass is known: no empty picture."""
    fit = study.fit
    monkeypatch.setattr("veridyn.view.scene._centre", lambda machine, body: None)
    monkeypatch.setattr("veridyn.report.motion.solids_of", lambda machine, model: ([], []))
    monkeypatch.setattr("veridyn.view.scene.SHORTEST_LINE_M", 1e9)
    (said,) = replay_section(study).blocks
    assert isinstance(said, Text) and "nothing to draw of “small arm”" in said.text
    made = running_machine(fit, study.training)
    assert made is not None and not made.drawn
    text = page_of(running_section(fit, study.training))
    assert re.search(r"<canvas[^>]* hidden>", text) and "let it fall" in text


def test_numbers_have_units_as_on_the_rest_of_the_page(study):
    made = running_machine(study.fit, study.training)
    assert made is not None and made.drawn
    assert made.heads == ("angle, rad", "speed, rad/s", "acceleration, rad/s²")
    text = page_of(running_section(study.fit, study.training))
    body = text[text.index('<figure class="running"') : text.index('<script type="application/json"')]
    assert "N·m" in body and "kg·m²" in body and "N*m" not in body and "^2" not in body
    mixed = replace(made, about={**made.about, "coordinates": [{"unit": "rad"}, {"unit": "m"}]})
    assert mixed.heads == ("position, rad or m", "speed, rad/s or m/s", "acceleration, rad/s² or m/s²")


@pytest.fixture(scope="module")
def fit():
    machine = small_arm()
    limits = JointLimits([-2.0] * machine.n, [2.0] * machine.n, [4.0] * machine.n, [15.0] * machine.n)
    path = FourierTrajectory.random(np.random.default_rng(0), limits, harmonics=4, frequency=0.5)
    t = 0.01 * np.arange(400)
    motion = Motion(t, *path.at(t))
    noise = 0.05 * np.random.default_rng(1).normal(size=(400, machine.n))
    motion = replace(motion, forces=vd.inverse_dynamics(machine, motion) + noise)
    return vd.identify(machine, motion, rows="joints"), motion


def page_of(section: Section) -> str:
    result = Result("running", 0, False, {}, {}, (), {})
    return page("running", Verdict("good", "It runs."), [], [section], result, "veridyn identify")


@pytest.fixture(scope="module")
def browser(tmp_path_factory, fit):
    folder = tmp_path_factory.mktemp("running")
    (folder / "page.html").write_text(page_of(running_section(*fit)), encoding="utf-8")
    made = Chromium(folder)
    made.open((folder / "page.html").as_uri())
    made.evaluate("running[0].then((r) => { window.machine = r; return true; })")
    yield made
    made.close()


def accelerations(fit, q, qd, tau, phi=None) -> np.ndarray:
    machine = fit.described
    m = Motion(np.zeros(1), np.atleast_2d(q), np.atleast_2d(qd), np.zeros((1, machine.n)), forces=np.atleast_2d(tau))
    return forward_dynamics(machine, m, fit.standard if phi is None else phi, engine="numpy").qdd[0]


def slide(browser, what: str, value: float) -> None:
    browser.evaluate(
        f"(() => {{ const e = document.querySelector('{what}'); e.value = {value!r}; e.dispatchEvent(new Event('input')); }})()"
    )


def shown(browser, what: str, count: int) -> np.ndarray:
    return np.array(
        [browser.evaluate(f"+document.querySelector('[data-{what}=\"{k}\"]').dataset.value") for k in range(count)]
    )


def test_in_a_browser_sliders_give_the_accelerations_of_python(browser, fit):
    found, _ = fit
    n = found.described.n
    rng = np.random.default_rng(4)
    for _ in range(3):
        q = rng.uniform(-1.0, 1.0, n)
        for k in range(n):
            slide(browser, f'input[data-coordinate=\\"{k}\\"]'.replace("\\", ""), float(q[k]))
        q = np.array(browser.evaluate("machine.machines[0].q"))
        slide(browser, "input[data-torque]", float(rng.uniform(-1.0, 1.0)))
        tau = np.zeros(n)
        tau[0] = browser.evaluate("+document.querySelector('[data-torque-shown]').dataset.value")
        assert tau[0] != 0.0
        expected = accelerations(found, q, np.zeros(n), tau)
        assert shown(browser, "acceleration", n) == pytest.approx(expected, rel=1e-9, abs=1e-9)
    slide(browser, "input[data-torque]", 0.0)


def test_in_a_browser_a_parameter_within_its_deviation_changes_the_prediction(browser, fit):
    found, _ = fit
    n, name = found.described.n, browser.evaluate("machine.about.parameters[1].name")
    browser.evaluate(
        "(() => { const e = document.querySelector('[data-parameter]'); e.value = 1; e.dispatchEvent(new Event('change')); })()"
    )
    slide(browser, "input[data-share]", 2.0)
    i = found.names.index(name)
    phi = found.standard.copy()
    phi[found.base.columns[i]] += 2.0 * found.sigma[i]
    q = np.array(browser.evaluate("machine.machines[1].q"))
    expected = accelerations(found, q, np.zeros(n), np.zeros(n), phi)
    assert shown(browser, "changed", n) == pytest.approx(expected, rel=1e-9, abs=1e-9)
    assert np.abs(shown(browser, "changed", n) - shown(browser, "acceleration", n)).max() > 0.0
    slide(browser, "input[data-share]", 0.0)


def test_in_a_browser_it_falls_as_it_does_in_python(browser, fit):
    found, _ = fit
    machine, n = found.described, found.described.n
    dry = np.zeros(n)
    for e in machine.elements:
        if e.kind == "coulomb":
            ((name, factor),) = e.on.items()
            dry[machine.coordinates.index(name)] += factor * found.standard[machine.parameters.index(e.parameter_name)]
    assert dry.any()
    browser.evaluate("document.querySelector('[data-do=back]').click()")
    start = np.array(browser.evaluate("machine.machines[0].q"))
    step = browser.evaluate("machine.about.step")
    browser.evaluate("machine.advance(0.05)")
    got = browser.evaluate("[machine.machines[0].q, machine.machines[0].qd]")

    def rate(x):
        v = x[n:]
        rounded = v / (v**8 + running.FRICTION_SPEED**8) ** 0.125
        return np.concatenate([v, accelerations(found, x[:n], v, dry * (np.sign(v) - rounded))])

    x = np.concatenate([start, np.zeros(n)])
    for _ in range(round(0.05 / step)):
        a = rate(x)
        b = rate(x + step / 2 * a)
        c = rate(x + step / 2 * b)
        d = rate(x + step * c)
        x = x + step / 6 * (a + 2 * b + 2 * c + d)
    assert np.concatenate(got) == pytest.approx(x, rel=1e-9, abs=1e-9)


def test_in_a_browser_the_places_are_those_of_kinematics(browser, fit):
    machine = fit[0].described
    q = [0.3, -0.7][: machine.n]
    points = np.array(browser.evaluate(f"machine.points({q})")).reshape(-1, 3)
    for j, body in enumerate(machine.body_names):
        assert points[1 + j] == pytest.approx(body_pose(machine, np.array([q]), body)[1][0], abs=1e-9)


def test_a_page_with_it_is_small(fit):
    assert len(page_of(running_section(*fit)).encode()) < 200_000


def test_kernels_that_are_too_large_are_left_out_with_a_note(fit, monkeypatch):
    monkeypatch.setattr(running, "MAX_KERNEL_BYTES", 1000)
    assert running_machine(*fit) is None
    (block,) = running_section(*fit).blocks
    assert isinstance(block, Text) and "longer than a page should carry" in block.text


def test_values_of_no_machine_do_not_run(fit):
    found, motion = fit
    broken = replace(found, values=-found.values)
    (block,) = running_section(broken, motion).blocks
    assert isinstance(block, Text) and "does not run in this page" in block.text
