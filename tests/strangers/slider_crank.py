"""A slider-crank with a spring on its slider: a model by points, bodies with a scalar inertia, and its torque in closed form.

One degree of freedom, with the crank's angle φ, the rod's angle β = −asin(r sin φ / L) and the slider at x = r cos φ + L cos β:

    τ = J φ̈ + ½ J′ φ̇² + V′,    J = Σ m |∂c/∂φ|² + I (∂angle/∂φ)²,    V = g Σ m y_c + ½ k (x − x₀)²
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

CRANK, ROD, REST = 0.3, 1.0, 1.0  # m
MASSES, INERTIAS, STIFFNESS = (1.0, 2.0, 3.0), (0.01, 0.17), 200.0  # kg; kg*m^2 about the centres; N/m
MODEL = f"""\
veridyn: 2
name: slider-crank
formulation: tree
gravity: [0, -9.81]
constants: {{r: {CRANK}, L: {ROD}}}
points:
  O: {{at: [0, 0], fixed: true}}
  A: {{at: [r*cos(0.7), r*sin(0.7)]}}
  B: {{at: [1.2, 0.0]}}
vectors: {{u: {{along: [1, 0]}}}}
bodies:
  crank: {{points: {{O: [0, 0], A: [r, 0]}}, mass: {MASSES[0]}, centre: [r/2, 0], inertia: {INERTIAS[0]}}}
  rod: {{points: {{A: [0, 0], B: [L, 0]}}, mass: {MASSES[1]}, centre: [L/2, 0], inertia: {INERTIAS[1]}}}
  slider: {{points: {{B: [0, 0]}}, vectors: {{u: [1, 0]}}, mass: {MASSES[2]}, centre: [0, 0], inertia: 0.04}}
joints:
  guide: {{kind: sliding, a: {{body: ground, at: [0, 0], axis: [1, 0]}}, b: {{body: slider, at: [0, 0], axis: [1, 0]}}}}
coordinates: {{phi: {{of: [O, A], from: [1, 0]}}, x: {{a: O, b: B, along: [1, 0]}}}}
elements:
  - {{kind: spring, on: x, rest: {REST}, value: {STIFFNESS}}}
loads:
  motor: {{kind: drive, on: phi, value: 2.0}}
sensors:
  encoder: {{kind: coordinate, on: phi, sigma: 0.001}}
"""
IDENTIFY = """\
veridyn: 1
kind: identify
name: slider-crank
model: {file: model.yaml}
log: {time: "t [s]", columns: {q.phi: "phi [rad]", force.phi: "tau [N*m]"}}
training: [training.csv]
validation: [validation.csv]
rows: actuated
signals: {lowpass: 8}
"""
OBSERVE = """\
veridyn: 1
kind: observe
name: slider-crank-observed
model: {file: model.yaml, formulation: tree}
log: {file: short.csv, time: "t [s]", columns: {encoder: "phi [rad]", motor: "tau [N*m]"}}
process_noise: {force: 0.1}
start: {coordinates: {phi: 0.95}, rates: {phi: 4}}
"""


def torque(phi: np.ndarray, rate: np.ndarray, acceleration: np.ndarray) -> np.ndarray:
    """The equation above; J′ and V′ by central differences of 1e-6 rad."""
    h = 1e-6
    slope_J, slope_V = ((f(phi + h) - f(phi - h)) / (2.0 * h) for f in (inertia, potential))
    return inertia(phi) * acceleration + 0.5 * slope_J * rate**2 + slope_V


def inertia(phi: np.ndarray) -> np.ndarray:
    s, c = np.sin(phi), np.cos(phi)
    b = -np.arcsin(CRANK * s / ROD)
    db = -CRANK * c / (ROD * np.cos(b))
    rod = (-CRANK * s - 0.5 * ROD * np.sin(b) * db) ** 2 + (CRANK * c + 0.5 * ROD * np.cos(b) * db) ** 2
    slider = (-CRANK * s - ROD * np.sin(b) * db) ** 2
    own = INERTIAS[0] + MASSES[0] * (CRANK / 2.0) ** 2
    return own + MASSES[1] * rod + INERTIAS[1] * db**2 + MASSES[2] * slider


def potential(phi: np.ndarray) -> np.ndarray:
    b = -np.arcsin(CRANK * np.sin(phi) / ROD)
    x = CRANK * np.cos(phi) + ROD * np.cos(b)
    heights = MASSES[0] * CRANK / 2.0 * np.sin(phi) + MASSES[1] * (CRANK * np.sin(phi) + ROD / 2.0 * np.sin(b))
    return 9.81 * heights + 0.5 * STIFFNESS * (x - REST) ** 2


def write_log(file: Path, frequency: float, samples: int, seed: int) -> None:
    """A log at 100 Hz of two sines, with noise of 1e-5 rad and 0.05 N*m."""
    t, w = 0.01 * np.arange(samples), 2.0 * np.pi * frequency
    parts = [(0.6, w, 0.0), (0.3, 2.3 * w, 1.0)]
    phi = 0.7 + sum(a * np.sin(k * t + p) for a, k, p in parts)
    rate = sum(a * k * np.cos(k * t + p) for a, k, p in parts)
    acceleration = -sum(a * k**2 * np.sin(k * t + p) for a, k, p in parts)
    rng = np.random.default_rng(seed)
    tau = torque(phi, np.asarray(rate), np.asarray(acceleration)) + 0.05 * rng.normal(size=samples)
    rows = np.column_stack([t, phi + 1e-5 * rng.normal(size=samples), tau])
    np.savetxt(file, rows, delimiter=",", header="t [s],phi [rad],tau [N*m]", comments="", fmt="%.9g")


def write_bench(folder: Path) -> None:
    """Model, logs and studies of the slider-crank."""
    for name, text in (("model.yaml", MODEL), ("identify.yaml", IDENTIFY), ("observe.yaml", OBSERVE)):
        (folder / name).write_text(text, encoding="utf-8")
    write_log(folder / "training.csv", 0.4, 1200, 1)
    write_log(folder / "validation.csv", 0.5, 1200, 2)
    write_log(folder / "short.csv", 0.5, 100, 3)
