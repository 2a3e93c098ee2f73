"""What two encoders show of a joint, against closed forms of a sine."""

from __future__ import annotations

import numpy as np
import pytest

from veridyn.identify.flexible.joint_equations import deflection, torque_through
from veridyn.identify.flexible.recording import JointSamples

W, K, D, LATE, VISCOUS = 3.0, 500.0, 2.0, 2e-3, 4.0


def test_a_sine_through_a_spring_and_a_late_encoder() -> None:
    """θ(t) − q(t − d) of θ = sin ωt and q = θ − δ, δ by the spring and its damper, to the cube of ω (d + D/K)."""
    t = np.linspace(0.0, 4.0, 400)
    speed, acceleration, jerk = W * np.cos(W * t), -(W**2) * np.sin(W * t), -(W**3) * np.cos(W * t)
    torque, rate = 20.0 * np.sin(W * t), 20.0 * W * np.cos(W * t)
    motion = np.stack([speed, acceleration, jerk])
    x = JointSamples(
        t=t,
        deflection=t,
        force=np.stack([torque, rate, -(W**2) * torque]) + VISCOUS * motion,
        speed=speed,
        all_force=torque + VISCOUS * speed,
        all_speed=speed,
        acceleration=acceleration,
        jerk=jerk,
        path=t,
        motor=t,
        apart=t,
        noise=0.0,
        kept=np.ones(len(t), dtype=bool),
        passed=lambda y: y,
        rate=100.0,
    )
    p, rubs = np.array([np.log(K), 0.0, VISCOUS, LATE, D / K]), np.zeros((6, len(t)))
    assert torque_through(p, x, rubs) == pytest.approx(torque)
    lag = np.arctan(W * D / K)
    late = np.sin(W * t) - np.sin(W * (t - LATE))
    before = 20.0 / np.hypot(K, W * D) * np.sin(W * (t - LATE) - lag)
    assert deflection(p, x, rubs) == pytest.approx(late + before, abs=20.0 / K * (W * (LATE + D / K)) ** 3)
