"""Control laws of a machine: an arm that follows steps by its own servos, and what delays, limits and anti-windup do to it.

    python examples/servos.py [--figure FILE.svg]

The servos are those of ``examples/studies/servo_arm_model.yaml``. Each variant changes one of them, and prints how far the shoulder
overshoots a step of 0.8 rad and when it has settled. The figure is that of docs/controllers.md.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

import veridyn as vd

Array = NDArray[np.float64]
MODEL = Path(__file__).parent / "studies" / "servo_arm_model.yaml"
STEP_RAD, AT_S = (0.8, -0.6), 0.1  # what is asked of shoulder and elbow, and when
SETTLED_RAD = 0.02  # within this of the command a joint counts as there
DURATION_S, RATE_HZ = 1.6, 250.0
COLOURS = ("#888888", "#1f6fb4", "#d1601f", "#3a8f3a", "#8a4fb0")
WIDTH, HEIGHT, EDGE = 720, 300, 44


@dataclass(frozen=True)
class Steps:
    """A command that jumps once and stays."""

    height: tuple[float, ...]

    def at(self, t: ArrayLike, /) -> tuple[Array, Array, Array]:
        on = (np.asarray(t, dtype=np.float64) >= AT_S)[..., None]
        r = np.where(on, np.array(self.height), 0.0)
        return r, np.zeros_like(r), np.zeros_like(r)


def variants() -> dict[str, vd.Machine]:
    """The arm as its file has it, and with one thing of its shoulder's servo changed."""
    arm = vd.load_model(MODEL)
    weak = arm.with_controller_constants({"shoulder_servo.limit": 10.0, "shoulder_servo.ki": 120.0})
    wound = [replace(c, anti_windup="none") if c.name == "shoulder_servo" else c for c in weak.controllers]
    return {
        "as in the file": arm,
        "measurements 40 ms old": arm.with_controller_constants({"shoulder_servo.measurement_delay": 0.04}),
        "limit 10 N·m, ki 120, clamp": weak,
        "the same without anti-windup": weak.with_controllers(wound),
    }


def run(machine: vd.Machine) -> vd.Experiment:
    """The log of one step response; what sensors read has their noise."""
    steps = vd.manoeuvres.Commanded(
        Steps(STEP_RAD), DURATION_S, RATE_HZ, q=[0.0, 0.0], method=vd.dynamics.Method("RK4", step=5e-4)
    )
    return vd.simulate(machine, steps, rng=np.random.default_rng(0))


def figures(log: vd.Experiment) -> tuple[float, float]:
    """Overshoot of the shoulder in percent of the step, and the time after the step from which it stays near the command, s."""
    t, q = log["shoulder_encoder"].t, log["shoulder_encoder"].values
    away = np.flatnonzero(np.abs(q - STEP_RAD[0]) > SETTLED_RAD)
    settled = t[away[-1] + 1] - AT_S if away[-1] + 1 < len(t) else float("nan")
    return 100.0 * (float(q.max()) / STEP_RAD[0] - 1.0), float(settled)


def drawing(logs: Mapping[str, vd.Experiment]) -> str:
    """The shoulder's responses as an SVG picture, with the command behind them."""
    first = next(iter(logs.values()))
    t = first["shoulder_encoder"].t
    curves = {"command": first["command.shoulder"].values}
    curves |= {name: log["shoulder_encoder"].values for name, log in logs.items()}
    top = 1.08 * max(float(y.max()) for y in curves.values())
    x = EDGE + (WIDTH - EDGE - 10) * t / DURATION_S
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="12">',
        "<title>Step responses of the shoulder</title>",
    ]
    for value in (0.0, 0.4, 0.8, 1.2):
        y = HEIGHT - EDGE - (HEIGHT - EDGE - 10) * value / top
        if y > 10:
            out.append(
                f'<path d="M{EDGE} {y:.1f}H{WIDTH - 10}" stroke="#dddddd"/><text x="8" y="{y + 4:.1f}">{value:g}</text>'
            )
    for value in np.arange(0.0, DURATION_S + 1e-9, 0.4):
        place = EDGE + (WIDTH - EDGE - 10) * value / DURATION_S
        out.append(f'<text x="{place - 8:.1f}" y="{HEIGHT - EDGE + 16}">{value:.1f}</text>')
    out.append(f'<text x="{WIDTH / 2:.0f}" y="{HEIGHT - 12}">time, s; angle of the shoulder, rad</text>')
    for k, (name, values) in enumerate(curves.items()):
        y = HEIGHT - EDGE - (HEIGHT - EDGE - 10) * values / top
        path = "L".join(f"{a:.1f} {b:.1f}" for a, b in zip(x, y, strict=True))
        out.append(f'<path d="M{path}" fill="none" stroke="{COLOURS[k]}" stroke-width="1.6"/>')
        out.append(
            f'<text x="{WIDTH - 250}" y="{HEIGHT - EDGE - 18 * (len(curves) - k)}" fill="{COLOURS[k]}">{name}</text>'
        )
    return "\n".join([*out, "</svg>\n"])


def main() -> None:
    parser = argparse.ArgumentParser(description="Step responses of an arm under its own servos.")
    parser.add_argument("--figure", help="write the picture of docs/controllers.md to this file")
    given = parser.parse_args()
    logs = {name: run(machine) for name, machine in variants().items()}
    print(f"{'shoulder':<36}{'overshoot, %':>14}{'settled after, s':>18}")
    for name, log in logs.items():
        overshoot, settled = figures(log)
        print(f"{name:<36}{overshoot:14.1f}{settled:18.2f}")
    if given.figure:
        Path(given.figure).write_text(drawing(logs), encoding="utf-8")


if __name__ == "__main__":
    main()
