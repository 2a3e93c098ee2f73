"""Dead zones: as given, or chosen from dry friction and speeds."""

from dataclasses import replace

import numpy as np
import pytest

from studies.bench_robot import JOINTS, robot
from veridyn.errors import DataError
from veridyn.identify.dead_zone import choose_dead_zones, with_dead_zones, zone_of
from veridyn.identify.estimate import identify
from veridyn.identify.observation import observation
from veridyn.identify.sampling import Sampling
from veridyn.identify.validate import validate
from veridyn.mechanics.inverse import inverse_dynamics
from veridyn.model.body import Body
from veridyn.model.elements import coulomb, damper
from veridyn.model.machine import Machine
from veridyn.model.motion import Motion
from veridyn.spatial.transforms import MDH


def moving(speeds: tuple[float, float, float], samples: int = 4000) -> Motion:
    """Sines of these largest speeds, and rates that fit them."""
    t = 0.005 * np.arange(samples)
    w = 2.0 * np.pi * np.array([0.7, 0.9, 1.1])
    a = np.array(speeds)
    angle = np.outer(t, w)
    return Motion(t, a / w * np.sin(angle), a * np.cos(angle), -a * w * np.sin(angle))


def with_forces(machine: Machine, m: Motion) -> Motion:
    return replace(m, forces=inverse_dynamics(machine, m))


def test_a_twentieth_of_the_largest_speed_is_chosen() -> None:
    """|cos| of a sine is below 0.05 for 2 asin(0.05)/π = 3.2 % of the time, so the share of the samples does not limit it."""
    zones = choose_dead_zones(robot(), [moving((2.0, 1.0, 0.04))])
    assert list(zones) == list(JOINTS)
    assert zones == pytest.approx({"q1": 0.1, "q2": 0.05, "q3": 0.002}, rel=0.051)  # two digits, rounded down
    assert all(zone <= limit for zone, limit in zip(zones.values(), (0.1, 0.05, 0.002), strict=True))


def test_no_more_than_thirty_percent_of_the_samples_are_left_out() -> None:
    m = moving((2.0, 1.0, 0.5))
    rest = replace(m, qd=np.where(np.arange(len(m))[:, None] < 2800, 1e-3 * m.qd, m.qd))  # 70 % slow
    zones = choose_dead_zones(robot(), [rest])
    for k, c in enumerate(JOINTS):
        left_out = float((np.abs(rest.qd[:, k]) < zones[c]).mean())
        assert 0.27 < left_out <= 0.3
    assert choose_dead_zones(robot(), [replace(m, qd=0.0 * m.qd)]) == {}
    assert zone_of(np.array([0.0, 0.0, 0.0, 1.0]), 0.5) == 0.0


def test_only_dry_friction_that_enters_the_rows_has_a_zone() -> None:
    m = moving((2.0, 1.0, 0.5))
    assert list(choose_dead_zones(robot(), [m], ["q2"])) == ["q2"]
    two = replace(m, q=m.q[:, :2], qd=m.qd[:, :2], qdd=m.qdd[:, :2])
    bodies = [Body("1"), Body("2", "1", placement=MDH(d=0.4))]
    assert choose_dead_zones(Machine.of_bodies(bodies, elements=[damper("q1", 1.0)]), [two]) == {}
    belt = Machine.of_bodies(bodies, elements=[coulomb({"q1": 1.0, "q2": -1.0}, 0.5, name="belt")])
    assert list(choose_dead_zones(belt, [two])) == ["belt"]


def test_a_number_counts_for_every_row_and_auto_for_every_verb() -> None:
    machine = robot()
    m = with_forces(machine, moving((2.0, 1.5, 1.0)))
    by_name = observation(machine, m, sampling=Sampling(dead_zone={"q1": 0.3, "q2": 0.3, "q3": 0.3}))
    number = observation(machine, m, sampling=Sampling(dead_zone=0.3))
    assert [f.samples for f in number.rows] == [f.samples for f in by_name.rows]
    assert all(f.samples < len(m) for f in number.rows)
    assert [f.samples for f in observation(machine, m, sampling=Sampling(dead_zone=0)).rows] == [len(m)] * 3
    for zone in (0.3, "auto"):
        how = Sampling(dead_zone=zone)
        fit = identify(machine, m, "wls", sampling=how)
        assert validate(fit, m, sampling=how).relative_error < 1e-6
    assert (
        identify(machine, m, "wls", sampling=Sampling(dead_zone=0.3), rows=["q2"]).rows[0].samples
        == by_name.rows[1].samples
    )


@pytest.mark.parametrize(
    ("zone", "text"), [("slow", "this is no dead zone"), (-0.1, "at least 0"), (np.nan, "at least 0")]
)
def test_what_is_no_dead_zone(zone: float | str, text: str) -> None:
    with pytest.raises(DataError, match=text):
        with_dead_zones(Sampling(dead_zone=zone), robot(), [moving((1.0, 1.0, 1.0))])
    with pytest.raises(DataError, match="not chosen yet"):
        _ = Sampling(dead_zone=zone).zones


def test_deviations_hold_where_a_log_begins_at_rest() -> None:
    """At rest a measured speed has the sign of its noise: with a zone of its own the true friction lies within 3σ, without far outside."""
    machine, rng = robot(), np.random.default_rng(11)
    m = moving((2.0, 1.5, 1.0))
    start = np.clip((m.t - 4.0) / 2.0, 0.0, 1.0)[:, None]
    led = replace(m, q=start * m.q, qd=start * m.qd, qdd=start * m.qdd)  # any samples will do: equations know no time
    true = inverse_dynamics(machine, led) + 0.02 * rng.normal(size=(len(m), 3))
    seen = replace(led, qd=led.qd + 1e-3 * rng.normal(size=led.qd.shape), forces=true)
    truth = {f"fs_{c}": machine.parameters.values[machine.parameters.index(f"fs_{c}")] for c in JOINTS}

    def off(how: Sampling) -> list[float]:
        fit = identify(machine, seen, "wls", sampling=how)
        return [abs(fit.values[fit.names.index(n)] - x) / fit.sigma[fit.names.index(n)] for n, x in truth.items()]

    assert max(off(Sampling(dead_zone="auto"))) < 3.0
    assert min(off(Sampling())) > 5.0
