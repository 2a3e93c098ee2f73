"""The paper about veridyn: its citations and figures exist, and the command that draws the figures draws what it is given."""

from __future__ import annotations

import importlib.util
import re
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest

import veridyn as vd
from veridyn.machines.arm import arm, exciting
from veridyn.model.motion import Motion

PAPER = Path(__file__).resolve().parents[2] / "paper"
TEXT = (PAPER / "paper.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def figures():
    spec = importlib.util.spec_from_file_location("paper_figures", PAPER / "figures.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_citation_is_in_the_bibliography_and_the_other_way_round() -> None:
    cited = {key for group in re.findall(r"\[(@[^\]]+)\]", TEXT) for key in re.findall(r"@(\w+)", group)}
    listed = set(re.findall(r"^@\w+\{(\w+),", (PAPER / "paper.bib").read_text(encoding="utf-8"), re.MULTILINE))
    assert cited == listed


def test_every_figure_is_there_and_is_drawn_by_the_command() -> None:
    named = re.findall(r"\]\((\w+\.svg)\)", TEXT)
    script = (PAPER / "figures.py").read_text(encoding="utf-8")
    assert len(named) == 2
    for name in named:
        assert ET.parse(PAPER / name).getroot().tag.endswith("svg")
        assert f'"{name}"' in script


def test_scores_are_errors_over_deviations(figures) -> None:
    """Forces with white noise of 1 N*m: 60 parameters and seeds fixed, the mean of z² is 1 to four of its deviations, 4 √(2/60)."""
    machine, rng = arm(), np.random.default_rng(3)
    t = np.linspace(0.0, 5.0, 600)
    motion = Motion(t, *exciting(rng, candidates=1).at(1.0 + t))
    forces = vd.inverse_dynamics(machine, motion)
    noisy = Motion(motion.t, motion.q, motion.qd, motion.qdd, forces=forces + rng.normal(size=forces.shape))
    fit = vd.identify(machine, noisy, "ols", vd.IdentifySettings(covariance="white"), rows="all", diagnose="off")
    z = figures.scores(fit, machine)
    assert np.mean(z**2) == pytest.approx(1.0, abs=4.0 * np.sqrt(2.0 / len(z)))


def test_a_drawing_has_its_labels_and_paths(figures) -> None:
    x, y = figures.Axis(0.0, 1.0), figures.Axis(-1.0, 1.0)
    path = figures.curve(np.array([0.0, 1.0]), np.array([-1.0, 1.0]), (x, y), "#000", 2.0)
    root = ET.fromstring(figures.drawing(x, y, [path], "time, s", "force, N", [("measured", "#000")]))
    words = [e.text for e in root.iter() if e.tag.endswith("text")]
    assert {"time, s", "force, N", "measured"} <= set(words)
    assert any(e.get("d") == "M0,240 1000,0" for e in root.iter())
