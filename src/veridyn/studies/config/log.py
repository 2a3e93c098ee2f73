"""Settings of logs: where columns lie in tables and recordings, and what is done about clocks and values that are damaged."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field, model_validator

from veridyn.signals.mending import Mending
from veridyn.studies.config.settings_section import section_of
from veridyn.studies.config.study import Number, StudySection

Ends = tuple[Number, Number]
DEFAULT_TIME = "t [s]"


def _column(value: Any) -> Any:
    """ "speed [deg/s]" is short for {column: speed, unit: deg/s}."""
    if isinstance(value, str):
        head, bracket, rest = value.rpartition("[")
        if bracket and rest.endswith("]"):
            return {"column": head.strip(), "unit": rest[:-1].strip()}
        return {"column": value}
    return value


class ColumnSettings(StudySection):
    """A column of the files; short: "name [unit]"."""

    column: str
    """Its name in the file."""
    unit: str = ""
    """Its unit; it may also stand in the file's header."""
    times: str | Number = 1.0
    """What turns it into the channel: a number, or a quantity such as "0.07 N*m/A" (a torque constant)."""


Column = Annotated[ColumnSettings, BeforeValidator(_column, json_schema_input_type=str | ColumnSettings)]


class PartSettings(StudySection):
    """One file of a log that is spread over several."""

    header: tuple[str, ...] = ()
    """Names of the columns of a text file that has no header row; "" skips one."""
    interleaved: bool = False
    """The file has one column, and the values of a sample stand below each other in the order of header."""
    time: str = ""
    """Its own clock, "t [s]"; without one its rows belong to those of the part that has one."""
    rate: Number | None = Field(default=None, gt=0.0)
    """In place of a clock of its own: samples a second, Hz."""
    delimiter: str | None = None
    """What separates columns, " " for any number of blanks; found by itself if left out."""
    decimal: str = "."
    """The decimal mark."""
    skip: int | None = Field(default=None, ge=0)
    """Lines before its header row; found by themselves if left out."""

    @model_validator(mode="after")
    def _one_clock(self) -> PartSettings:
        if self.time and self.rate is not None:
            raise ValueError("either time or rate")
        return self


class TableSettings(StudySection):
    """How the columns of a file become channels."""

    time: str = DEFAULT_TIME
    """The column of times and its unit. MDF files and bags need none: there each channel has its own clock."""
    rate: Number | None = Field(default=None, gt=0.0)
    """Of a file without a column of times, in place of time: samples a second, Hz."""
    columns: dict[str, Column]
    """Channel → column."""
    header: tuple[str, ...] = ()
    """Names of the columns of a text file that has no header row; "" skips one."""
    delimiter: str | None = None
    """What separates columns, " " for any number of blanks; found by itself if left out."""
    decimal: str = "."
    """The decimal mark."""
    skip: int | None = Field(default=None, ge=0)
    """Lines of a text file before its header row, or before its numbers; found by themselves if left out."""

    @property
    def clock_rate(self) -> float | None:
        """The rate of a log without a clock; None where a column is its clock."""
        return self.rate

    @model_validator(mode="after")
    def _time_or_rate(self) -> TableSettings:
        if self.clock_rate is not None and self.time != DEFAULT_TIME:
            raise ValueError("either time or rate")
        return self


class LogSettings(TableSettings):
    """What the files hold."""

    example: ClassVar[Mapping[str, Any]] = {"columns": {"q.joint1": "angle [rad]", "force.joint1": "torque [N*m]"}}

    columns: dict[str, Column]
    """Channel → column. Channels: q.C, qd.C, qdd.C and force.C of a coordinate C, q_motor.M and force_motor.M of a motor,
    signal.S of what a drive gain multiplies, base.omega.x …, base.acceleration.x …, wrench.BODY.fx … Of a machine with closed loops,
    q.C of any coordinates that determine it, as a rule the actuated ones, and force.C of those with a motor."""
    parts: dict[str, PartSettings] = Field(default_factory=dict)
    """Where a log is spread over several files: part → how that file is read."""
    block: int | None = Field(default=None, ge=1000)
    """Rows read at a time, for CSV and Parquet logs that do not fit the memory; checks, cut-off and pictures then rest on the first
    block of each log, and gaps, resets and missing values are refused."""


class LoadSettings(StudySection):
    """A known load that a run carries: with it on the measured side, drive gains have a scale."""

    body: str
    """Body that carries it."""
    mass: Number = Field(gt=0.0)
    """Its mass, kg."""
    sigma: Number = Field(default=0.0, ge=0.0)
    """Standard deviation of the mass, kg; of a payload study it goes into the deviations of gains and of what is weighed."""
    centre: tuple[Number, Number, Number]
    """Its centre of mass in the body's frame, m."""
    inertia: tuple[Number, Number, Number, Number, Number, Number] = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    """XX XY XZ YY YZ ZZ about its centre of mass, in the axes of the body, kg*m^2; a point mass if left out."""


def _recording(value: Any) -> Any:
    return {"file": value} if isinstance(value, str) else value


class RecordingSettings(StudySection):
    """One log, or a share of one; short: the name of its file."""

    file: str = ""
    """Its file: .csv (or any text), .parquet, .mat, .npz, .mf4 (MDF), .bag, .db3, .mcap; or the folder of a ROS 2 bag."""
    files: dict[str, str] = Field(default_factory=dict)
    """Its files by part, where it is spread over several."""
    share: Ends = (0.0, 1.0)
    """What is taken of it, as shares of its time: [0, 0.7] is the first 70 %. Logs are filtered whole and then shared out."""
    start: Number | None = None
    """Time from which it is taken, s, on the log's clock."""
    end: Number | None = None
    """Time up to which it is taken, s."""
    speeds: Ends = (0.0, 1.0)
    """What is used of it by speed ‖q̇‖, as shares of its samples from the slowest to the fastest: [0, 0.5] is the slow half."""
    drop: dict[str, tuple[Ends, ...]] = Field(default_factory=dict)
    """Row → spans [from, to] in s, on the log's clock, that this row leaves out."""
    load: LoadSettings | None = None
    """A known load that this run carries, where there is one: what drive gains are calibrated from."""

    @model_validator(mode="after")
    def _one_of(self) -> RecordingSettings:
        if bool(self.file) == bool(self.files):
            raise ValueError("either file or files")
        for name in ("share", "speeds"):
            low, high = getattr(self, name)
            if not 0.0 <= low < high <= 1.0:
                raise ValueError(f"{name}: two numbers from 0 to 1, the second larger")
        return self


Recording = Annotated[RecordingSettings, BeforeValidator(_recording, json_schema_input_type=str | RecordingSettings)]


class ClockSettings(section_of(Mending, "duplicates", "backwards", "gaps", "max_gap")):
    """What is done about clocks that are not as they should be; what is found is always said."""

    delays: Literal["report", "correct", "ignore"] = "report"
    """Delays of force channels against the motion: say, also take them out, or do not look."""


class ValueSettings(section_of(Mending, "missing", "spikes", "dropouts", "standstill", "dead", own=["standstill"])):
    """What is done about values that are not as they should be; what is found is always said."""

    standstill: Literal["keep", "drop"] = "keep"
    """Spans of a second and more in which a joint rests: keep them, or leave them out of the row of that joint, where friction may be
    anything."""
