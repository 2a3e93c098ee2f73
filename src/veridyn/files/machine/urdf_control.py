"""Servos of a machine as ``<ros2_control>`` of a URDF, in the form that Gazebo's plugin reads: a joint with the gains of its position loop.

What the tags have no place for is named: delays, encoder zeros, limits and rates, laws other than PD and PID.
"""

from __future__ import annotations

from collections.abc import Sequence
from xml.sax.saxutils import escape, quoteattr

from veridyn.model.controller import Controller
from veridyn.model.machine import Machine

PLUGIN = "gazebo_ros2_control/GazeboSystem"
GAINS = {"kp": "pos_kp", "ki": "pos_ki", "kd": "pos_kd"}
TAG = b"<ros2_control"
END = b"</robot>"
LOST = {
    "command_delay": "delays of commands",
    "measurement_delay": "delays of measurements",
    "zero": "encoder zeros",
    "limit": "limits of force",
    "rate_limit": "limits of the force's rate",
    "velocity_feedforward": "feed-forward of speed",
    "acceleration_feedforward": "feed-forward of acceleration",
}


def is_servo(c: Controller) -> bool:
    """Whether a law is one that these tags carry: PD or PID of a position, which sets a force."""
    return c.kind in ("pd", "pid") and not c.motor and c.feedforward == "none"


def with_servos(text: bytes, machine: Machine, joints: Sequence[str]) -> tuple[bytes, list[str]]:
    """The text of a URDF with the servos of these joints, and sentences about what of the controllers it does not have."""
    own = [c for c in machine.controllers if is_servo(c) and c.on in joints]
    others = [f"controller {c.name}" for c in machine.controllers if c not in own]
    notes = [f"a URDF has no place for {', '.join(others)}: left out."] if others else []
    if not own:
        return text, notes
    if TAG in text:
        left = "the file has <ros2_control> of its own, which stays as it is: gains are not written."
        return text, [*notes, left]
    at = text.rindex(END)
    lost = [words for key, words in LOST.items() if any(_differs(c, key) for c in own)]
    notes += [f"<ros2_control> has no place for {', '.join(lost)}: left out."] if lost else []
    return text[:at] + _block(machine.name, own).encode("utf-8") + text[at:], notes


def _differs(c: Controller, key: str) -> bool:
    """Whether a constant is given and does something."""
    return c.constants.get(key, 0.0) not in (0.0, float("inf"))


def _block(name: str, servos: Sequence[Controller]) -> str:
    lines = [
        f'  <ros2_control name={quoteattr(name or "machine")} type="system">',
        f"    <hardware><plugin>{escape(PLUGIN)}</plugin></hardware>",
    ]
    for c in servos:
        lines.append(f"    <joint name={quoteattr(c.on)}>")
        for key, word in GAINS.items():
            value = float(c.constants.get(key, 0.0))
            lines.append(f'      <param name="{word}">{value!r}</param>')
        lines += [
            '      <command_interface name="position_pid"/>',
            '      <state_interface name="position"/>',
            '      <state_interface name="velocity"/>',
            "    </joint>",
        ]
    return "\n".join([*lines, "  </ros2_control>", ""])
