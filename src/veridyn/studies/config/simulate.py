"""The settings of ``kind: simulate``: from a machine and what drives it to a log, with the truth beside it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field, model_validator

from veridyn.model.graph import Formulation
from veridyn.studies.config.identify import ModelSettings
from veridyn.studies.config.log import Column, TableSettings
from veridyn.studies.config.study import Number, RunName, StudyFile, StudySection

Three = tuple[Number, Number, Number]
Gains = Number | dict[str, Number]


class FourierSettings(StudySection):
    """A finite Fourier series: q(t) = centre + Σ_k [sine_k sin(2π k f t) + cosine_k cos(2π k f t)]."""

    frequency: Number = Field(gt=0.0)
    """Of the motion, Hz."""
    centre: dict[str, Number] = Field(default_factory=dict)
    """Coordinate → middle of its motion, rad or m; 0 if left out."""
    sine: dict[str, tuple[Number, ...]] = Field(default_factory=dict)
    """Coordinate → amplitudes of the sines, one for each harmonic from the first on."""
    cosine: dict[str, tuple[Number, ...]] = Field(default_factory=dict)
    """Coordinate → amplitudes of the cosines."""
    start: Number = Field(default=0.0, ge=0.0)
    """Time over which it is blended in from rest at the centre, s."""


class FollowedSettings(TableSettings):
    """A motion that the machine makes: a table of positions (trajectory.csv of veridyn excite, or any log), or a Fourier series."""

    example: ClassVar[Mapping[str, Any]] = {"file": "trajectory.csv"}

    file: str = ""
    """The table: .csv (or any text), .parquet, .mat, .npz."""
    time: str = "time [s]"
    """The column of times and its unit."""
    columns: dict[str, Column] = Field(default_factory=dict)
    """Channel → column: q.C of a coordinate C and, where the table has them, qd.C and qdd.C; columns of these names if left out."""
    fourier: FourierSettings | None = None
    """In place of a table."""

    @model_validator(mode="after")
    def _one_way(self) -> FollowedSettings:
        if bool(self.file) == bool(self.fourier):
            raise ValueError("either file or fourier")
        return self


class ControllerSettings(StudySection):
    """A controller that makes a tree follow the motion: Γ = Γ_model + kp (q_r − q) + kd (q̇_r − q̇), or the machine's own."""

    own: bool = False
    """Whether the controllers of the model file follow the motion, each at its own rate with its delays, in place of this law."""
    bandwidth: Number = Field(default=5.0, gt=0.0)
    """Of the feedback, Hz: kp and kd, where left out, are those of a damped oscillator of this frequency with the inertia that each joint
    moves at the start."""
    kp: Gains | None = None
    """N*m/rad or N/m: one number, or a number for each coordinate."""
    kd: Gains | None = None
    """N*m*s/rad or N*s/m."""
    feedforward: bool = True
    """Whether the forces that a model asks for are fed forward."""
    model: str = ""
    """The controller's model file; the machine's own if left out."""

    @model_validator(mode="after")
    def _one_law(self) -> ControllerSettings:
        given = sorted(self.model_fields_set & {"bandwidth", "kp", "kd", "feedforward"})
        if self.own and given:
            raise ValueError(
                f"no {given[0]} where the machine's own controllers follow: the model file has their constants"
            )
        return self


class InputSettings(TableSettings):
    """What acts from outside: force.C on a coordinate C, signal.S of a drive gain, wrench.BODY.fx … mz on a body; of a mechanism its loads
    by name (load.x and so on where a load has several components); of a car of a few numbers speed, steer and bank."""

    formulas: dict[str, str | Number] = Field(default_factory=dict)
    """Input → a number, or a formula in the time t: 20*sin(2*pi*0.5*t). Besides the functions of model files: exp, tanh, and step(x),
    which is 1 from x = 0 on."""
    file: str = ""
    """A table with inputs."""
    columns: dict[str, Column] = Field(default_factory=dict)
    """Input → column of the table."""
    between: Literal["linear", "hold"] = "linear"
    """What inputs of the table do between its times."""

    @model_validator(mode="after")
    def _whole(self) -> InputSettings:
        if bool(self.file) != bool(self.columns):
            raise ValueError("file and columns, both or neither")
        twice = set(self.columns) & set(self.formulas)
        if twice:
            raise ValueError(f"each input once, and not '{min(twice)}' as a formula and as a column")
        return self


class BaseSettings(StudySection):
    """A free base at the start, in the frame of the ground."""

    position: Three = (0.0, 0.0, 0.0)
    """Of its origin, m."""
    quaternion: tuple[Number, Number, Number, Number] = (1.0, 0.0, 0.0, 0.0)
    """Its attitude, w first."""
    velocity: Three = (0.0, 0.0, 0.0)
    """Of its origin, in the ground's frame, m/s."""
    omega: Three = (0.0, 0.0, 0.0)
    """In its own frame, rad/s."""


class SimulateStart(StudySection):
    """Where the machine starts, if no motion says so; what is left out is zero, or as the model file assembles it, and at rest."""

    coordinates: dict[str, Number] = Field(default_factory=dict)
    """Coordinate → its value, rad or m. Of a machine with loops, as many as it has degrees of freedom, or none."""
    rates: dict[str, Number] = Field(default_factory=dict)
    """Coordinate → its rate, rad/s or m/s. Of a mechanism or a machine with loops, as many as it has degrees of freedom, or none. Of a
    car of a few numbers: lateral_speed and yaw_rate."""
    base: BaseSettings | None = None
    """Of a tree whose base is free."""


class IntegratorSettings(StudySection):
    """How the equations of motion are integrated."""

    name: Literal[
        "auto",
        "RK4",
        "RK23",
        "RK45",
        "DOP853",
        "Radau",
        "BDF",
        "LSODA",
        "index3",
        "penalty",
        "augmented",
        "r_matrix",
    ] = "auto"
    """Of a tree: RK4 or one of SciPy's methods; auto takes LSODA where dry friction makes it stiff, DOP853 elsewhere. Of a mechanism:
    index3 (auto), penalty, augmented or r_matrix, or the explicit rules RK4, RK45 and DOP853. Of a car of a few numbers: RK4 (auto)."""
    step: Number | None = Field(default=None, gt=0.0)
    """Longest step, s; of RK4 and of mechanisms a millisecond if left out, of cars two, of the others what their tolerances ask."""
    rtol: Number = Field(default=1e-8, gt=0.0)
    """Relative tolerance of SciPy's methods."""
    atol: Number = Field(default=1e-9, gt=0.0)
    """Absolute tolerance of SciPy's methods."""
    check: bool = True
    """Integrate once more, with steps twice as long or tolerances a hundred times as wide, and tell by how much that motion differs."""
    friction_speed: Number = Field(default=0.02, ge=0.0)
    """Speed below which dry friction is rounded off; a motion that is made exactly needs none of it. 0: friction holds what it can without
    creeping, by steps of RK4."""


class SensorSettings(StudySection):
    """What a sensor makes of the truth: y = quantised(lowpassed x(t − delay) + bias + noise), on its own clock."""

    noise: Number = Field(default=0.0, ge=0.0)
    """Standard deviation, in the unit of the channel."""
    bias: Number = 0.0
    """Added to every reading."""
    walk: Number = Field(default=0.0, ge=0.0)
    """Density of the walk of the bias, unit^2/s."""
    quantum: Number = Field(default=0.0, ge=0.0)
    """Step between two readings; 0: none."""
    rate: Number | None = Field(default=None, gt=0.0)
    """Its own clock, Hz; that of the study if left out."""
    delay: Number = Field(default=0.0, ge=0.0)
    """A reading stamped t is the truth at t − delay, s."""
    cutoff: Number = Field(default=0.0, ge=0.0)
    """Band of the sensor, Hz; 0: everything."""
    order: int = Field(default=2, ge=1, le=12)
    """Of its low-pass."""
    causal: bool = False
    """Whether the low-pass comes late, as where nobody compensates it."""


class SimulateAccept(StudySection):
    """What is accepted; a missed limit is told, exit code 1."""

    energy_drift_percent: Number | None = None
    """Largest drift of a conserved energy, of the largest kinetic energy."""
    constraint_error: Number | None = None
    """Largest opening of a loop or constraint, m."""
    coarser_difference: Number | None = None
    """Largest difference of a coordinate from that of a coarser integration, rad or m."""
    tracking_error: Number | None = None
    """Largest error of a coordinate under the controller, rad or m."""


class SimulatedModelSettings(ModelSettings):
    """The machine: a model file, or the one that a run has identified."""

    formulation: Formulation | None = None
    """Coordinates in which it is simulated: those of joints, or points and unit vectors; the machine's own if left out. A car of a few
    numbers has single_track alone."""


def _nothing(value: object) -> object:
    return {} if value is None else value


class SimulateFile(StudyFile):
    """A machine simulated: the log that its sensors record, and the truth beside it."""

    kind: Literal["simulate"] = "simulate"  # pyright: ignore[reportIncompatibleVariableOverride]
    """What is done."""
    name: RunName = "simulation"
    model: SimulatedModelSettings
    motion: FollowedSettings | None = None
    """A motion that the machine makes, exactly unless a controller is given; without one it moves as the inputs drive it."""
    controller: ControllerSettings | None = None
    inputs: InputSettings = InputSettings(columns={})
    start: SimulateStart = SimulateStart()
    duration: Number | None = Field(default=None, gt=0.0)
    """How long, s; as long as the table of the motion if left out."""
    rate: Number = Field(default=200.0, gt=0.0)
    """Rate of the truth, and of sensors without a clock of their own, Hz."""
    integrator: IntegratorSettings = IntegratorSettings()
    sensors: dict[
        str, Annotated[SensorSettings, BeforeValidator(_nothing, json_schema_input_type=SensorSettings | None)]
    ] = Field(default_factory=dict)
    """Channel, or pattern such as q.* → what measures it; the first that fits decides. Without any, a tree has perfect sensors of positions
    and forces, and a mechanism or a car the sensors of its file; of these, entries here stand before those."""
    format: Literal["csv", "parquet"] = "csv"
    """Of the log and the truth."""
    accept: SimulateAccept = SimulateAccept()

    @model_validator(mode="after")
    def _possible(self) -> SimulateFile:
        if self.controller is not None and self.motion is None:
            raise ValueError("a motion for the controller to follow")
        if self.controller is not None and self.model.formulation == "natural":
            raise ValueError("no controller: in natural coordinates a machine makes its motion exactly")
        if self.motion is not None and self.start != SimulateStart():
            raise ValueError("no start where a motion is given: it starts there")
        if self.duration is None and (self.motion is None or not self.motion.file):
            raise ValueError("a duration, which only the table of a motion implies")
        return self
