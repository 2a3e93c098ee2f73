"""The settings of ``kind: excite``: from a model and its limits to a motion that tells most of its parameters."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from veridyn.studies.config.identify import Executing, ModelSettings
from veridyn.studies.config.study import Number, RunName, StudyFile, StudySection

Ends = tuple[Number, Number]
Three = tuple[Number, Number, Number]


class RangeSettings(StudySection):
    """What one coordinate may do; what is left out has no limit."""

    range: Ends | None = None
    """Least and largest position, rad or m."""
    speed: Number | None = Field(default=None, gt=0.0)
    """Largest speed, rad/s or m/s."""
    acceleration: Number | None = Field(default=None, gt=0.0)
    """Largest acceleration, rad/s^2 or m/s^2."""


class BoxSettings(StudySection):
    """A box in the frame of the ground."""

    low: Three
    """Least x, y and z, m."""
    high: Three
    """Largest x, y and z, m."""


class ClearanceSettings(StudySection):
    """Two points that keep a distance."""

    body: str
    """One body."""
    other: str
    """The other body."""
    distance: Number = Field(gt=0.0)
    """Least distance, m."""
    point: Three = (0.0, 0.0, 0.0)
    """Point of the one body, in its frame, m."""
    other_point: Three = (0.0, 0.0, 0.0)
    """Point of the other body, in its frame, m."""


class CapsuleSettings(StudySection):
    """All that is within a radius of a segment that is fixed to a body."""

    body: str
    """The body, or ground for what stands in the cell."""
    start: Three
    """One end of the segment in the body's frame, m."""
    end: Three | None = None
    """The other end; the same, which makes a sphere, if left out."""
    radius: Number = Field(gt=0.0)
    """m."""


class CollisionSettings(StudySection):
    """What may not touch, as capsules: bodies of the machine, things in the cell, the floor."""

    shapes: Literal["model", "given"] = "model"
    """Where capsules come from: those of the model file or around the collision shapes of a URDF, for bodies without one here, or this list
    alone."""
    capsules: tuple[CapsuleSettings, ...] = ()
    """Capsules of bodies, and of things on the ground."""
    margin: Number = Field(default=0.01, ge=0.0)
    """Distance that is kept besides, m."""
    floor: Number | None = None
    """Height of the floor above the origin of the ground, against gravity, m; no floor if left out."""
    ignore: tuple[tuple[str, str], ...] = ()
    """Pairs of bodies that are not checked; [body, floor] for the floor."""


class LimitSettings(StudySection):
    """What the machine may do. What is left out is taken from a URDF, if the model is one; what that leaves out too is not checked, and
    the report says so."""

    actuators: dict[str, RangeSettings] = Field(default_factory=dict)
    """Actuated coordinate → its limits; ranges and speeds that are left out are those of a URDF."""
    acceleration: Number | dict[str, Number] | None = None
    """Largest acceleration, rad/s^2 or m/s^2, of every actuator or by its name, where actuators does not say one."""
    urdf: tuple[Literal["range", "speed", "force"], ...] = ("range", "speed", "force")
    """What is taken from the limits of a URDF where it is left out here."""
    coordinates: dict[str, RangeSettings] = Field(default_factory=dict)
    """Designed coordinate → its limits, where these are not the actuators (a platform's pose)."""
    force: dict[str, Number] = Field(default_factory=dict)
    """Actuated coordinate → largest force, N or N*m, by the model's own parameters; the effort of a URDF where it is left out."""
    workspace: dict[str, BoxSettings] = Field(default_factory=dict)
    """Body → box that its origin stays in."""
    clearances: tuple[ClearanceSettings, ...] = ()
    """Distances within the machine."""
    collision: CollisionSettings | None = None
    """Collisions of capsules; not checked if left out."""


class MotionSettings(StudySection):
    """The motion that is designed."""

    kind: Literal["fourier", "spline"] = "fourier"
    """A finite Fourier series, or periodic B-splines."""
    harmonics: int = Field(default=5, ge=1)
    """Of a Fourier series."""
    points: int = Field(default=16, ge=6)
    """Control points of a spline."""
    frequency: Number | Ends = 0.1
    """Of the motion, Hz; two numbers are the ends between which it is chosen."""
    at: tuple[str, ...] = ()
    """Coordinates that are designed, for a machine with loops; the actuated ones if left out."""
    centre: dict[str, Number] = Field(default_factory=dict)
    """Designed coordinate → where searches begin about; the middle of its range, or home, if left out."""
    start: dict[str, Number] = Field(default_factory=dict)
    """Designed coordinate → where the machine stands now, all of them: the trajectory begins there. At the motion if left out."""


class NoiseSettings(StudySection):
    """Noise of the measured forces, for the predicted deviations."""

    sigma: dict[str, Number] = Field(default_factory=dict)
    """Row → standard deviation, N or N*m, for every row. Without any, 1 is assumed with a warning, and only ratios of deviations count."""
    correlation: Number = Field(default=0.0, gt=-1.0, lt=1.0)
    """Between any two rows."""
    memory: Number = Field(default=0.0, gt=-1.0, lt=1.0)
    """From one sample to the next."""


class SearchSettings(StudySection):
    """How hard to look."""

    criterion: Literal["d", "a", "e", "condition"] = "d"
    """D-, A- or E-optimal, or the condition number of the regressor."""
    starts: int = Field(default=8, ge=1)
    """Random motions to start from; the best result is kept."""
    iterations: int = Field(default=200, ge=1)
    """Steps of each search, at most."""


class ExciteFile(StudyFile):
    """A motion designed for identification: what to run, and how well each parameter will be known."""

    kind: Literal["excite"] = "excite"  # pyright: ignore[reportIncompatibleVariableOverride]
    """What is done."""
    name: RunName = "excitation"
    model: ModelSettings
    rows: Literal["all"] | tuple[str, ...] = "all"
    """Rows that are measured."""
    limits: LimitSettings = LimitSettings()
    motion: MotionSettings = MotionSettings()
    noise: NoiseSettings = NoiseSettings()
    search: SearchSettings = SearchSettings()
    executor: Executing = "none"
    """Who shares in the starts of the search: none, local for the threads of this machine, {local: 4}, or {dask: ADDRESS}."""
    rate: Number = Field(default=100.0, gt=0.0)
    """Of the controller and the log, Hz."""
    periods: int = Field(default=10, ge=1)
    """Periods to record."""
    accept: dict[str, Number] = Field(default_factory=dict)
    """Largest deviation that will do, by name of a base parameter: missed ones are told, exit code 1."""

    @model_validator(mode="after")
    def _possible(self) -> ExciteFile:
        if isinstance(self.motion.frequency, tuple) and not self.motion.frequency[0] < self.motion.frequency[1]:
            raise ValueError("two frequencies, the lower one first")
        return self
