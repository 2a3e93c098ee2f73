"""Small simulation studies: a three-joint arm, a crane, a car, and what their studies say, written into a folder."""

from __future__ import annotations

from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
STUDIES = REPOSITORY / "examples" / "studies"
ARM = STUDIES / "simulate_arm_model.yaml"
CRANE = REPOSITORY / "src" / "veridyn" / "machines" / "crane.yaml"
FREE = f"""
veridyn: 1
kind: simulate
name: swing
model: {{file: {ARM}, priors: keep}}
duration: 0.5
rate: 100
"""
LED = (
    FREE
    + """
motion:
  fourier: {frequency: 0.5, centre: {q2: -0.5}, sine: {q1: [0.3], q2: [0.2, 0.1], q3: [0.4]}, cosine: {q3: [0, 0.2]}}
"""
)
PUSHED = f"""
veridyn: 1
kind: simulate
name: crane
model: {{file: {CRANE}}}
inputs: {{formulas: {{motor: 120*sin(2*pi*0.2*t)*step(2 - t)}}}}
start: {{coordinates: {{x: 0.5, swing: 0.1}}}}
duration: 1
rate: 50
integrator: {{step: 0.01}}
"""
STEERED = """
veridyn: 1
kind: simulate
name: drive
model: {file: car.yaml}
inputs: {formulas: {speed: 20, steer: 0.05*sin(0.9*t)}}
duration: 4
rate: 25
"""


def frictionless(folder: Path) -> Path:
    """The arm without friction, as a model file."""
    text = ARM.read_text(encoding="utf-8")
    file = folder / "frictionless.yaml"
    file.write_text(text[: text.index("elements:")], encoding="utf-8")
    return file


def written(folder: Path, text: str, name: str = "study.yaml") -> Path:
    study = folder / name
    study.write_text(text, encoding="utf-8")
    return study
