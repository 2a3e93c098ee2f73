"""The settings of ``kind: observe``: from a machine and a log of its sensors to states with bands and virtual sensors.

Studies of a car of a few numbers, a model in formulation single_track, have sections of their own here, also those of ``kind: identify``:
the same drive is identified and observed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, model_validator

from veridyn.mechanics.single_track import READINGS
from veridyn.model.graph import Formulation
from veridyn.model.single_track import CarNoise
from veridyn.observe.car.path_noise import PathNoise
from veridyn.observe.filters.filter import Filter, Late
from veridyn.observe.measurements import InputHold
from veridyn.observe.observation import Kind
from veridyn.signals.drive import CHANNELS
from veridyn.signals.pulses import PulseWheel
from veridyn.studies.config.log import Column, Ends, PartSettings, TableSettings
from veridyn.studies.config.settings_section import section_of
from veridyn.studies.config.study import Number, RunName, StudyFile, StudySection

Size = Number | dict[str, Number]


class PulseSettings(section_of(PulseWheel, "holes", "signed", "phase", "hole_sigma", own=["holes"])):
    """A wheel with holes whose edges are counted: its column holds the count, of unit 1, and readings are made at edges."""

    holes: int = Field(ge=1)
    """Edges in one turn."""


class GeodeticSettings(StudySection):
    """Where a sensor of positions has latitudes and longitudes: they become metres east, north and up, its x, y and z."""

    latitude: Column
    """Column of the latitude, "name [deg]"."""
    longitude: Column
    """Column of the longitude, "name [deg]"."""
    height: Column | None = None
    """Column of the height above the ellipsoid, "name [m]"; that of the origin throughout, if left out."""
    origin: tuple[Number, Number] | tuple[Number, Number, Number] | None = None
    """Latitude and longitude of x = y = z = 0, deg, and its height, m; the first whole fix if left out."""


class ObservedLogSettings(TableSettings):
    """The log: its file, and what its columns hold."""

    file: str
    """Its file: .csv (or any text), .parquet, .mat, .npz; ${NAME} stands for a variable of the environment."""
    columns: dict[str, Column]
    """Output of a sensor → column "name [unit]"; what acts → column of a force that is known: a load of the machine; of a tree also
    force.C of a motor on C, signal.S, wrench.BODY.fx … mz, and q.C, qd.C and qdd.C of a prescribed coordinate. SENSOR.available (or
    that of an output): 0 where its readings are not to be used; OUTPUT.sigma: deviation of each reading."""
    pulses: dict[str, PulseSettings] = Field(default_factory=dict)
    """Output of a sensor of a wheel's angle → its holes: its column is a count of edges."""
    geodetic: dict[str, GeodeticSettings] = Field(default_factory=dict)
    """Sensor of positions → its columns on the Earth, in place of columns for its outputs."""
    clock_zero: Number | Literal["first"] = 0.0
    """Time of the log's clock that counts as zero in what follows and in the results, s; first: that of its first sample."""
    empty: Literal["told", "none"] = "told"
    """Cells without a number: readings that failed and are told, or none at all, where sensors share a table and each has its own clock."""
    start: Number | None = None
    """Time from which it is taken, s, on the log's clock."""
    end: Number | None = None
    """Time up to which it is taken, s."""


class FilterSettings(StudySection):
    """What observes."""

    name: Literal["linear", "error_ekf", "error_ekf_force", "ekf", "ukf", "smoother"] = "ekf"
    """The filter; ekf first, smoother where the log is complete. A car of a few numbers has ekf, ukf and smoother."""
    unknown: tuple[str, ...] | None = None
    """Independent coordinates or loads whose force is estimated; one on each independent coordinate if left out."""
    independents: tuple[str, ...] = ()
    """Coordinates that the states are made of; chosen by itself if left out."""
    gate: Annotated[Number, Field(gt=0.0, lt=1.0)] | Literal["auto"] | None = "auto"
    """auto: a reading beyond 4.9 deviations counts little, unless its output is there again and again. A number: the probability that a
    good reading passes, others are refused. null: every reading passes."""
    frozen_after: Annotated[int, Field(ge=1)] | Literal["auto"] | None = "auto"
    """auto: readings that the inspection of logs calls frozen are not used; a joint that dwells is not frozen. A number: so many repeats of
    one value mean that a sensor hangs. null: never."""
    late: Late = "use"
    """Readings of sensors with a delay: use them at their stamp, drop them, or rewind as a running program would."""
    horizon: Number | None = Field(default=None, gt=0.0)
    """How far rewind goes back, s; without end if left out."""
    step: Number | None = Field(default=None, gt=0.0)
    """Longest step of the integration, s. If left out 0.01 s, or shorter where the fastest oscillation needs that, or where steps do not
    converge or bias the estimates."""
    input_hold: InputHold = "zero"
    """How what acts runs between its samples. zero: each holds to the next, as what a controller puts out; linear: straight from sample to
    sample, as a measured force does."""
    drifts: bool | tuple[str, ...] = True
    """Whether parameters that the model file marks as drifting are estimated with the state, or which of them."""

    def method(self) -> Filter:
        """The filter of this name, with its settings."""
        from veridyn.observe.filters.methods import FILTERS  # here: it brings all filters along

        return FILTERS[self.name](
            gate=self.gate, late=self.late, horizon=math.inf if self.horizon is None else self.horizon
        )


class ProcessNoiseSettings(StudySection):
    """Process noise and uncertainty at the start; each one number for all, or a number by name. Without any density, the one is taken
    under which the first thousand samples are most likely."""

    force: Size | None = None
    """Density of the walk of unknown forces, (N or N*m)^2/s."""
    acceleration: Size | None = None
    """Density of white acceleration, (unit/s^2)^2/Hz."""
    position: Size | None = None
    """Density of the walk of the coordinates, unit^2/s."""
    start: Size = 1.0
    """Deviation of the independent coordinates at the start, rad or m."""
    start_rate: Size = 1.0
    """Deviation of their rates at the start."""
    start_force: Size = 0.0
    """Deviation of the unknown forces at the start, N or N*m."""
    sensors: dict[str, Number] = Field(default_factory=dict)
    """Sensor → deviation of its noise, in place of the machine's."""
    model_error: Literal["learned", "off"] = "learned"
    """White acceleration on top of it: as much as the innovations demand and at least a hundredth of the motion's own, or none."""

    @property
    def tuned(self) -> bool:
        """Whether the log chooses the density."""
        return self.force is None and self.acceleration is None and self.position is None


class ObserveStart(StudySection):
    """Where the model starts; what is left out is as the model file has it, and at rest."""

    coordinates: dict[str, Number] = Field(default_factory=dict)
    """Coordinate → its value, rad or m; of a free base: base.x, base.y, base.z, base.roll, base.pitch, base.yaw."""
    rates: dict[str, Number] = Field(default_factory=dict)
    """Independent coordinate → its rate, rad/s or m/s; base.x, base.y, base.z in the ground's axes, base.roll … base.yaw for the angular
    velocity in the base's own axes."""


class PlaceSettings(StudySection):
    """A place on a body."""

    body: str
    """The body."""
    at: tuple[Number, ...]
    """Where on it, in its frame, m."""
    axis: tuple[Number, ...] = ()
    """Direction of a sensor's first axis, in the body's frame."""
    side: tuple[Number, ...] = ()
    """Direction that fixes its second axis."""


class VirtualSettings(StudySection):
    """A quantity that nobody measures."""

    kind: Kind
    """What it is."""
    on: str | tuple[str, str] | PlaceSettings
    """Coordinate, point, place {body, at}, spring or damper; of a reaction a joint, or [body, point]."""


class ObserveAccept(StudySection):
    """What is accepted; a missed limit is told, exit code 1."""

    nis: Ends | None = None
    """Least and largest mean of the normalised innovations squared; 1 is ideal."""
    share_white: Number | None = Field(default=None, ge=0.0, le=1.0)
    """Least share of the sensors' outputs with white innovations."""
    rejected: int | None = Field(default=None, ge=0)
    """Most readings that are not used."""
    nis_horizon: Number | None = Field(default=None, gt=0.0)
    """Largest mean squared deviation of readings that are predicted over 1, 10 and 100 samples without any; 1 is ideal."""
    nis_muted: Number | None = Field(default=None, gt=0.0)
    """Largest mean squared deviation of a sensor's readings that are predicted without this sensor; 1 is ideal."""
    model_error: Number | None = Field(default=None, gt=0.0)
    """Largest model error, as a share of the acceleration that a coordinate makes."""
    findings: int | None = Field(default=None, ge=0)
    """Most findings: causes that limit what may be concluded, such as a delay that is not told."""
    verdict: Literal["good", "fair"] | None = None
    """The least grade of the verdict that will do."""

    @model_validator(mode="after")
    def _ordered(self) -> ObserveAccept:
        if self.nis is not None and not self.nis[0] < self.nis[1]:
            raise ValueError("two limits of nis, the lower one first")
        return self


class ObservedModelSettings(StudySection):
    """The machine with its sensors: a model file, or the one that a run has identified."""

    file: str = ""
    """Model file (.yaml) beside the study file, in either formulation."""
    fit: str = ""
    """In place of a file: folder of a run of veridyn identify. The filter considers the covariance of the identified values."""
    formulation: Formulation | None = None
    """Coordinates in which it is observed: those of joints, or points and unit vectors; the machine's own if left out. A car of a few
    numbers (single_track) has the settings of drives."""
    unexcited: Number | None = Field(default=None, gt=0.0)
    """Of a fit: standard deviation of directions that its motion did not excite, as a share of typical sizes; refused if left out."""

    @model_validator(mode="after")
    def _one_source(self) -> ObservedModelSettings:
        if bool(self.file) == bool(self.fit):
            raise ValueError("either file or fit")
        if self.unexcited is not None and not self.fit:
            raise ValueError("a fit: unexcited says how uncertain it is")
        return self


class ObserveStudy(StudyFile):
    """What every study of kind observe has, whatever its machine."""

    kind: Literal["observe"] = "observe"  # pyright: ignore[reportIncompatibleVariableOverride]
    """What is done."""
    name: RunName = "observation"
    model: ObservedModelSettings
    filter: FilterSettings = FilterSettings()
    withheld: dict[str, tuple[Ends, ...]] = Field(default_factory=dict)
    """Sensor → spans [from, to], s, as log.start counts: its readings there are compared with their predictions and not used."""


class ObserveFile(ObserveStudy):
    """A machine observed: states with deviations, and sensors that nobody mounted, from a log."""

    without: tuple[str, ...] = ()
    """Sensors of the machine that this log does not have."""
    log: ObservedLogSettings
    process_noise: ProcessNoiseSettings = ProcessNoiseSettings()
    start: ObserveStart | Literal["readings"] = ObserveStart()
    """Where it starts; readings: coordinates with a sensor of their own start at its first reading."""
    virtual: dict[str, VirtualSettings] = Field(default_factory=dict)
    """Name → a quantity to tell with its band."""
    settle: Number = Field(default=0.0, ge=0.0)
    """Time at the beginning, s, that the figures leave out."""
    accept: ObserveAccept = ObserveAccept()

    @property
    def start_given(self) -> ObserveStart:
        """What the study states of the start; nothing where the readings say it."""
        return self.start if isinstance(self.start, ObserveStart) else ObserveStart()


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


class CarNoiseSettings(
    section_of(CarNoise, "slip_error", "bank", "lateral", "yaw", "sensors", "walk", own=["sensors"])
):
    """What the equations leave out, as standard deviations."""

    sensors: dict[str, Number] = Field(default_factory=dict)
    """Sensor → deviation of its samples at the rate that is used, in place of the machine's."""
    tuned: tuple[str, ...] = ()
    """Which of these are found with the parameters, within a factor e or so of what is stated: slip_error, bank, lateral, yaw, or a
    sensor."""


class PathSettings(section_of(PathNoise, "position", "wheel", "gyro", "jerk", "yaw", "bias")):
    """The way of the car from satellite positions, wheel speeds and gyroscope."""

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
    """Span of the log, s, that parameters are fitted to; its first 70 % if left out, and all of it beside a log for validation."""
    validation: str = ""
    """File of another drive with the columns of log, by which the car is judged; what training leaves of the log if left out."""
    axle_rates: dict[Literal["front", "rear"], Number] = Field(default_factory=dict)
    """Axle → roll stiffness at the wheels, N*m/rad, for the distribution of the roll moment; without them none is given."""

    @model_validator(mode="after")
    def _judged_by_one_file(self) -> CarIdentifyFile:
        if self.validation and self.log.files:
            raise ValueError("validation is one file beside log: {file: …}; a log in parts is judged by its own end")
        return self


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
