"""The settings of studies of a car of a few numbers: ``kind: identify`` and ``kind: observe`` of a model in formulation single_track."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from pydantic import Field, model_validator

from veridyn.mechanics.single_track import READINGS
from veridyn.model.single_track import CarNoise
from veridyn.signals.drive import CHANNELS
from veridyn.studies.config.log import Column, Ends, PartSettings, TableSettings
from veridyn.studies.config.observe import ObservedModelSettings, ObserveStudy
from veridyn.studies.config.study import Number, StudyFile, StudySection


class DriveSettings(TableSettings):
    """The log of a drive: its file or files, and what its columns hold. Seconds count from its first sample."""

    example: ClassVar[Mapping[str, Any]] = {
        "file": "FILE",
        "columns": {"speed": "speed [m/s]", "yaw_rate": "yaw [rad/s]"},
    }

    file: str = ""
    """Its file: .csv (or any text), .parquet, .mat, .npz, .mf4, .bag; ${NAME} stands for a variable of the environment."""
    files: dict[str, str] = Field(default_factory=dict)
    """Its files by part, where it is spread over several."""
    parts: dict[str, PartSettings] = Field(default_factory=dict)
    """Part → how that file is read."""
    columns: dict[str, Column]
    """Channel → column "name [unit]". Channels: speed, steer, ax, ay, yaw_rate, roll, east, north, latitude, longitude, heading,
    throttle, brake, wheel_fl … wheel_rr, travel_fl … travel_rr (compression of the suspension at the wheel). x forward, y left, z up."""
    rate: Number | None = Field(default=None, gt=0.0)
    """Rate of the samples that are used, Hz: means over as long as a sample lasts; that of the log if left out."""
    delays: dict[str, Number] = Field(default_factory=dict)
    """Channel → how much later than the others it is stamped, s."""
    start: Number = 0.0
    """Time from which the log is used, s from its first sample."""
    end: Number | None = None
    """Time up to which it is used, s."""

    @property
    def clock_rate(self) -> float | None:
        """A drive has a clock; its rate is that of the samples that are used."""
        return None

    @model_validator(mode="after")
    def _one_of(self) -> DriveSettings:
        if bool(self.file) == bool(self.files):
            raise ValueError("either file or files")
        odd = sorted((set(self.columns) | set(self.delays)) - set(CHANNELS))
        if odd:
            raise ValueError(f"'{odd[0]}' is no channel of a car: {', '.join(CHANNELS)}")
        return self


class CarReferenceSettings(TableSettings):
    """What was measured otherwise, to judge by; the filter does not see it."""

    file: str
    """Its file."""
    columns: dict[str, Column]
    """Quantity → column: sideslip, lateral_speed, speed, heading, roll."""


class CarNoiseSettings(StudySection):
    """What the equations leave out, as standard deviations."""

    slip_error: Number = Field(default=CarNoise.slip_error, gt=0.0)
    """Errors of the tyre curves of each axle, rad of slip angle; they last slip_time seconds."""
    bank: Number = Field(default=CarNoise.bank, gt=0.0)
    """Bank of the road, rad; it lasts bank_time seconds."""
    lateral: Number = Field(default=CarNoise.lateral, gt=0.0)
    """White lateral acceleration, m/s^2/sqrt(Hz)."""
    yaw: Number = Field(default=CarNoise.yaw, gt=0.0)
    """White yaw acceleration, rad/s^2/sqrt(Hz)."""
    sensors: dict[str, Number] = Field(default_factory=dict)
    """Sensor → deviation of its samples at the rate that is used, in place of the machine's."""
    walk: dict[str, Number] = Field(default_factory=dict)
    """Estimated parameter → its drift in a square root of a second."""
    tuned: tuple[str, ...] = ()
    """Which of these are found with the parameters, within a factor e or so of what is stated: slip_error, bank, lateral, yaw, or a
    sensor."""


class PathSettings(StudySection):
    """The way of the car from satellite positions, wheel speeds and gyroscope."""

    position: Number = Field(default=0.1, gt=0.0)
    """Deviation of positions, m."""
    wheel: Number = Field(default=0.15, gt=0.0)
    """Deviation of wheel speeds, m/s."""
    gyro: Number = Field(default=0.01, gt=0.0)
    """Deviation of the gyroscope, rad/s."""
    jerk: Number = Field(default=2.0, gt=0.0)
    """Density of what changes the acceleration, m/s^3/sqrt(Hz)."""
    yaw: Number = Field(default=0.3, gt=0.0)
    """Density of what changes the yaw rate, rad/s^2/sqrt(Hz)."""
    bias: Number = Field(default=2e-5, ge=0.0)
    """Walk of the gyroscope's bias, rad/s/sqrt(s)."""
    gaps: tuple[Ends, ...] = ()
    """Spans [from, to], s, in which positions are withheld, to see how the observer carries on."""


class CarStudyFile(StudySection):
    """What both kinds of studies of a car share."""

    of_a_drive: ClassVar[bool] = True

    model: ObservedModelSettings
    log: DriveSettings
    noise: CarNoiseSettings = CarNoiseSettings()
    checks: bool = True
    """Look for a steering wheel angle taken for that of the road wheels, degrees and minutes, clocks that differ and swapped sides."""
    accept: dict[str, Ends] = Field(default_factory=dict)
    """Figure → least and largest value that are accepted; the exit code is 1 where one is missed."""


class CarIdentifyFile(CarStudyFile, StudyFile):
    """Parameters of a car from an ordinary drive, with deviations and priors, and what the drive cannot show."""

    kind: Literal["identify"] = "identify"  # pyright: ignore[reportIncompatibleVariableOverride]
    """What is done: veridyn identify runs it."""
    training: Ends | None = None
    """Span of the log, s, that parameters are fitted to; its first 70 % if left out. The rest is for validation."""
    axle_rates: dict[Literal["front", "rear"], Number] = Field(default_factory=dict)
    """Axle → roll stiffness at the wheels, N*m/rad, for the distribution of the roll moment; without them none is given."""


class CarObserveFile(CarStudyFile, ObserveStudy):
    """A car observed: sideslip, tyre forces, roll and wheel loads with bands, its way through gaps of the satellite positions."""

    training: Ends | None = None
    """Span of the log, s, from which estimated parameters are identified first; without it they stay as the model has them."""
    estimate: tuple[str, ...] = ()
    """Parameters that are estimated with the state, within their bounds."""
    virtual: tuple[Literal[READINGS], ...] = ("sideslip", "front_force", "rear_force", "roll")  # pyright: ignore[reportInvalidTypeForm]
    """Quantities to give with their bands."""
    path: PathSettings | None = None
    """The way of the car, where positions are in the log."""
    reference: CarReferenceSettings | None = None
    """What was measured otherwise, for the figures and pictures."""
    compare_linear: bool = False
    """Also run a linear two-state Kalman filter with the tyre stiffness of the model file and, with training, with one that linear tyres
    are identified with, for comparison with the reference."""
