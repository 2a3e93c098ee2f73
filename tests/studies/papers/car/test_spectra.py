"""Spectra of a log made of known sinusoids, and the modes of the simulated car."""

from __future__ import annotations

import numpy as np
import pytest

from veridyn.model.experiment import Channel, Experiment
from veridyn.simulate.vehicle.description import Vehicle
from veridyn.studies.papers.car.spectra import car_modes, spectra


def test_modes_of_the_car_are_those_of_the_paper() -> None:
    """Paper 000, VI.B: driveline at 3.9, 4.3 and 5.5 Hz, wheels at 12.7 Hz, chassis between 0.4 and 3 Hz."""
    found = car_modes(Vehicle())
    line = sorted(hz for name, hz in found.items() if name.startswith("driveline"))
    assert line == pytest.approx([3.9, 4.3, 5.5], abs=0.05)
    hops = [hz for name, hz in found.items() if name.startswith("wheel hop")]
    assert len(hops) == 4 and min(hops) < 12.7 < max(hops)
    assert all(0.4 < hz < 3.5 for name, hz in found.items() if name.split()[0] in ("heave", "roll", "pitch"))


def test_peaks_get_names_and_cuts_lie_between() -> None:
    rate, t = 200.0, np.arange(0.0, 40.0, 1.0 / 200.0)
    rng = np.random.default_rng(0)
    x = np.sin(2 * np.pi * 1.5 * t) + 0.5 * np.sin(2 * np.pi * 4.0 * t) + 0.01 * rng.normal(size=len(t))
    named = {"roll 1": 1.5, "driveline 1": 4.1, "wheel hop 1": 12.0}
    found = spectra(Experiment({"a": Channel("a", t, x, "m")}), named, ("a",))
    assert {p.name: round(p.frequency, 1) for p in found.channels[0].peaks} == {"roll 1": 1.5, "driveline 1": 4.0}
    assert found.chassis == pytest.approx(np.sqrt(1.5 * 4.1)) and found.suspension == pytest.approx(18.0)
    assert rate == 200.0


def test_a_channel_that_never_sinks_into_noise_says_so() -> None:
    t = np.arange(0.0, 20.0, 1.0 / 200.0)
    noise = np.random.default_rng(1).normal(size=len(t))
    found = spectra(Experiment({"a": Channel("a", t, noise, "m")}), {"roll 1": 1.5}, ("a",)).channels[0]
    assert np.isnan(found.cutoff) and "no cutoff" in found.remark
