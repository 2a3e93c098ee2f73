"""What a notebook shows: tables of the numbers themselves, pictures of the report, nothing that touches the page around it."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

import veridyn as vd
from veridyn.errors import DataError, FileError
from veridyn.files.access import shipped
from veridyn.identify.base import generic_motion
from veridyn.mechanics.tree.dynamics.inverse import inverse_dynamics
from veridyn.report import measured
from veridyn.report.notebook import Display, show_machine


@pytest.fixture(scope="module")
def found() -> tuple[vd.Machine, vd.Fit, vd.Motion]:
    machine = vd.load_model(shipped("veridyn:linkage.yaml"))
    motion = generic_motion(machine, 300)
    forces = np.full(motion.q.shape, np.nan)
    gamma = inverse_dynamics(machine, motion)
    forces[:, list(machine.independent)] = gamma + 0.1 * np.random.default_rng(1).normal(size=gamma.shape)
    motion = replace(motion, forces=forces)
    return machine, vd.identify(machine, motion), motion


def test_reprs_are_short(found) -> None:
    machine, fit, motion = found
    for shown in (machine, fit, fit.base, vd.validate(fit, motion)):
        assert len(repr(shown)) < 200 and type(shown).__name__ in repr(shown)


def test_a_fit_shows_each_parameter_with_its_deviation(found) -> None:
    _, fit, _ = found
    html = fit._repr_html_()
    for name, value, sigma in zip(fit.names, fit.values, fit.sigma, strict=True):
        v, s = measured(float(value), float(sigma))
        assert re.search(
            rf">{re.escape(name)}</th>\s*<td[^>]*>[^<]*</td>\s*<td[^>]*>{re.escape(v)}</td>\s*<td[^>]*>{re.escape(s)}<",
            html,
        ), name


def test_a_fit_shows_its_verdict_with_the_reasons(found) -> None:
    _, fit, _ = found
    html = fit._repr_html_()
    assert fit.verdict.headline in html and fit.verdict.reasons
    assert all(r.text in html for r in fit.verdict.reasons)


def test_the_style_holds_within_the_display_only(found) -> None:
    """Every rule is nested in .veridyn: braces close where the style ends, and :root is not touched."""
    html = found[1]._repr_html_()
    style = html[html.index("<style>") + 7 : html.index("</style>")].strip()
    assert style.startswith(".veridyn {") and ":root" not in style and "&amp;" not in style
    assert "& {\n  --paper:" in style
    depth, closed = 0, []
    for k, letter in enumerate(style):
        depth += {"{": 1, "}": -1}.get(letter, 0)
        if letter == "}" and depth == 0:
            closed.append(k)
    assert closed == [len(style) - 1]


def test_names_from_files_do_no_harm() -> None:
    evil = "<script>alert(1)</script>"
    rod = vd.Link(name=evil, inertia=vd.spatial.from_centre(1.0, [0.1, 0, 0], np.eye(3) * 0.01))
    machine = vd.Machine.build([rod], [vd.Joint(name="hinge", a="ground", b=evil, actuated=True)])
    assert "<script>" not in show_machine(machine)._repr_html_()


def test_pictures_of_a_fit_a_motion_and_a_validation(found, tmp_path) -> None:
    _, fit, motion = found
    assert "Correlations" in fit.plot()._repr_html_()
    along = fit.plot(motion)._repr_html_()
    assert along.count('class="measured"') >= 1 and along.count('class="predicted"') >= 1
    validation = vd.validate(fit, motion)
    assert 'class="predicted"' in validation.plot()._repr_html_()
    page = validation.plot().save(tmp_path / "picture.html")
    assert page.read_text(encoding="utf-8").startswith("<!doctype html>")
    with pytest.raises(FileError, match="exists already"):
        validation.plot().save(page)
    for name in ("a.png", "a.svg", "a.pdf"):
        with pytest.raises(FileError, match="a page is not written into a"):
            fit.plot().save(tmp_path / name)
        assert not (tmp_path / name).exists()


def test_states_with_their_bands() -> None:
    machine = vd.load_model(shipped("veridyn:crane.yaml"))
    columns = {"travel": "trolley", "tilt": "angle"}
    units = {"travel": "mm", "tilt": "deg", "time": "s"}
    log = vd.load_log(shipped("veridyn:crane.csv"), columns=columns, units=units, time="time")
    states = vd.observe(machine, log, settings=vd.ObserveSettings(process_noise=vd.ProcessNoise(force=400.0)))
    assert len(repr(states)) < 200
    assert states.states[0] in states._repr_html_()
    picture = states.plot(states.states[0])
    assert isinstance(picture, Display) and picture._repr_html_().count("<svg") == 2  # the legend's and the plot's
    with pytest.raises(DataError, match="no state 'sving'"):
        states.plot("sving")
    frame = states.to_frame()
    assert list(frame.columns[:2]) == [states.states[0], f"{states.states[0]}.sigma"]
    assert np.array_equal(frame[states.states[0]], states.reduced[:, 0])


def test_frames_have_the_numbers_of_the_fit(found) -> None:
    _, fit, motion = found
    frame = fit.to_frame()
    assert list(frame.index) == list(fit.names) and np.array_equal(frame["sigma"], fit.sigma)
    rows = vd.validate(fit, motion).to_frame()
    assert list(rows.index) == [r.row for r in fit.rows]
    assert rows["error_std_percent"].iloc[0] == pytest.approx(100.0 * vd.validate(fit, motion).rows[0].std_error)


def test_long_names_keep_their_columns(found) -> None:
    lines = found[1].summary().splitlines()
    head = next(line for line in lines if line.startswith("parameter"))
    assert all(len(line) >= len(head) - 4 for line in lines[2 : 2 + len(found[1].names)])


def test_a_car_of_a_few_numbers_shows_them() -> None:
    car = vd.model.car_machine("small", {"mass": vd.model.PriorValue(900.0, 20.0), "front": 1.0, "rear": 1.4})
    page = car._repr_html_()
    assert "tanh tyres" in page and "rear_stiffness" in page and "by default" in page and "estimated" in page
