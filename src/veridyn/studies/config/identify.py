"""The settings of ``kind: identify``: from a model and logs to judged parameters, with friction chosen term by term and a reduced model."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from veridyn.errors import did_you_mean
from veridyn.identify.essential_rule import EssentialRule
from veridyn.identify.friction_terms import TERMS, Term
from veridyn.identify.pipeline.preparation import Preparation
from veridyn.model.elements.kinds import CONSTANT_KEYS, KINDS
from veridyn.model.graph import Formulation
from veridyn.studies.config.log import ClockSettings, LogSettings, Recording, RecordingSettings, ValueSettings
from veridyn.studies.config.settings_section import section_of
from veridyn.studies.config.study import Number, StudyFile, StudySection


class ExecutorSettings(StudySection):
    """Threads of this machine, or a cluster of Dask; one of the two."""

    local: int | None = Field(default=None, ge=1)
    """How many threads of this machine."""
    dask: str | None = Field(default=None, min_length=1)
    """Address of a Dask scheduler, such as tcp://10.0.0.1:8786 (extra cluster); its workers need the same version of veridyn."""

    @model_validator(mode="after")
    def _one(self) -> ExecutorSettings:
        if (self.local is None) == (self.dask is None):
            raise ValueError("either {local: THREADS} or {dask: ADDRESS}")
        return self


Executing = Literal["none", "local"] | ExecutorSettings


class EssentialSettings(section_of(EssentialRule)):
    """Which parameters a reduced model leaves out: those with the largest relative deviation, one by one."""


class FrictionSettings(StudySection):
    """A friction ladder: terms enter the model one by one, each only if the error on held-out training data falls by more than its
    standard error."""

    terms: tuple[Term, ...] = TERMS
    """What is tried: viscous and coulomb first, then on each coordinate the term under which the error falls most."""
    on: tuple[str, ...] = ()
    """Coordinates; those with a motor if left out."""
    temperature: str | dict[str, str] = ""
    """The signal of the term temperature: the column signal.NAME; one for all, or coordinate → signal."""
    blocks: int = Field(default=40, ge=10)
    """Into how many blocks the training samples are cut; a block must be longer than residuals are correlated. Behind a low-pass of the
    equations short logs have fewer, which is noted."""
    standard_errors: Number = Field(default=1.0, ge=0.0)
    """By how many of its standard errors the held-out error must fall."""


def _element_kind(kind: str) -> str:
    if kind not in KINDS:
        raise ValueError(f"'{kind}' is no kind of element. {did_you_mean(kind, list(KINDS))}.")
    return kind


class TableLawSettings(StudySection):
    """A law by points."""

    at: tuple[Number, ...]
    """Places, which grow."""
    values: tuple[Number, ...]
    """Values there, as many."""
    of: str = "c"
    """What the places are places of: c, what the element acts on, or another formula."""
    shape: Literal["smooth", "linear"] = "smooth"
    """Between points: smooth, with a continuous derivative that never swings beyond them, or linear."""
    outside: Literal["hold", "extend"] = "hold"
    """Beyond the ends: hold their values, or extend along their slopes."""


class ElementSettings(StudySection):
    """One element to add to the model, or one for each coordinate, or for each with a motor."""

    word: ClassVar[str] = "an element"
    example: ClassVar[Mapping[str, Any]] = {"kind": "inertia", "on": "joint1"}

    kind: Annotated[str, AfterValidator(_element_kind), Field(json_schema_extra={"enum": list(KINDS)})]
    """What it is: damper, coulomb, offset, spring, inertia, drive_gain, … as in model files."""
    on: str | dict[str, Number] = "each"
    """A coordinate, a combination {q5: 1, q6: 1}, each: one for every coordinate, or actuated: one for every coordinate with a motor."""
    value: Number | None = None
    """The prior of its parameter."""
    name: str = ""
    """Name of its parameter; made of kind and coordinate if left out."""
    signal: str = ""
    """The signal a drive gain multiplies: the column signal.NAME; with on: each or actuated, * stands for the coordinate."""
    unit: str = ""
    """If it is not the usual one."""
    formula: str = ""
    """Of a law: what its value multiplies, of c, v, coordinates, rate(NAME) and signal(NAME)."""
    table: TableLawSettings | None = None
    """Of a table: its points."""
    speed: Number | None = None
    """Of a Stribeck curve: the speed at which half of it is left."""
    rest: Number | None = None
    """Of a spring or a cubic one: where it is relaxed."""
    exponent: Number | None = None
    """Of a Stribeck curve: how steeply it falls, 2 if left out."""
    gap: Number | None = None
    """Of a bump stop or a dead zone: where its force begins."""

    def constants(self) -> dict[str, float]:
        """The constants of its law that are given."""
        given = {key: getattr(self, key, None) for key in CONSTANT_KEYS}
        return {key: float(x) for key, x in given.items() if x is not None}


class TransmissionSettings(StudySection):
    """Motors that drive the joints: q = T q_motor, or ratios for motors that drive one joint each."""

    ratios: dict[str, Number] = Field(default_factory=dict)
    """Coordinate → turns of its motor for one of the joint; the motor is called as the coordinate."""
    motors: tuple[str, ...] = ()
    """Names of coupled motors."""
    joints: tuple[str, ...] = ()
    """Coordinates they drive, as many."""
    matrix: tuple[tuple[Number, ...], ...] = ()
    """Rows of T: coordinates from motor angles."""

    @model_validator(mode="after")
    def _one_way(self) -> TransmissionSettings:
        if bool(self.ratios) == bool(self.matrix):
            raise ValueError("either ratios, or motors, joints and matrix")
        if 0.0 in self.ratios.values():
            raise ValueError("ratios that are not zero")
        return self


def _kept(value: Any) -> Any:
    """ "warn" was the word for "keep"."""
    return "keep" if value == "warn" else value


def _listed(default: float | None) -> Callable[[Any], Any]:
    """A list of names is short for a mapping of each to `default`."""

    def mapping_of(value: Any) -> Any:
        names = isinstance(value, list | tuple) and all(isinstance(name, str) for name in value)
        return dict.fromkeys(value, default) if names else value

    return mapping_of


Values, Positions = dict[str, Number | None], dict[str, Number]
Known = Annotated[Values, BeforeValidator(_listed(None), json_schema_input_type=list[str] | Values)]
Lock = Annotated[Positions, BeforeValidator(_listed(0.0), json_schema_input_type=list[str] | Positions)]


class ModelSettings(StudySection):
    """The machine: a model file, or the one that a run has identified."""

    file: str = ""
    """Model file (.yaml), URDF file or MJCF file (.xml), beside the study file; ${NAME} stands for a variable of the environment."""
    fit: str = ""
    """In place of a file: folder of a run of veridyn identify, whose machine has the identified values and their covariance."""
    formulation: Formulation | None = None
    """Coordinates of the machine: tree, those of joints; natural, points and unit vectors; single_track, those of a car of a few numbers;
    the machine's own if left out. What needs a regressor is done in joint coordinates, and the identified machine is in its own again."""
    unexcited: Number | None = Field(default=None, gt=0.0)
    """Of a fit: standard deviation of directions that its motion did not excite, as a share of typical sizes; refused if left out."""
    gravity: tuple[Number, Number, Number] | None = None
    """Acceleration in the frame of the ground, m/s^2, in place of the model's."""
    base: Literal["auto", "fixed", "free"] = "auto"
    """Of a URDF or MJCF: fixed, the root stands on the ground; free, it moves; auto, free where a floating joint says so, else fixed."""
    impossible: Annotated[Literal["auto", "unknown", "keep", "refuse"], BeforeValidator(_kept)] = "auto"
    """Of a URDF: inertias that no body can have are unknown, kept as in the file, or refused. auto: unknown where parameters are
    identified, kept where a motion is designed or simulated."""
    priors: Literal["keep", "forget"] = "keep"
    """Whether the inertias and friction of the file are priors, or there are none."""
    elements: tuple[ElementSettings, ...] = ()
    """Friction and the like, added to what the model has."""
    transmission: TransmissionSettings | None = None
    """Gears and couplings, where motors are measured, in place of the model's."""
    lock: Lock = Field(default_factory=dict)
    """Joints that do not move and need no column: a list of coordinates, locked at 0, or {coordinate: value}, rad or m; * and ? stand for
    any letters, as in wheel_*. Their bodies become part of what carries them."""
    known: Known = Field(default_factory=dict)
    """Parameters that are known: a list of names, or {name: value}. * and ? stand for any letters, as in XY_*; a group stands for all its
    parameters: inertia, mass, friction, offset, other."""
    estimated: tuple[str, ...] = ()
    """Parameters that are estimated although the model file has them as known: names, patterns and groups, as of known."""

    @model_validator(mode="after")
    def _one_source(self) -> ModelSettings:
        if bool(self.file) == bool(self.fit):
            raise ValueError("either file or fit")
        if self.lock and self.fit:
            raise ValueError("a file: a fit is of the joints that it was made with, so none of them is locked")
        if self.unexcited is not None and not self.fit:
            raise ValueError("a fit: unexcited says how uncertain it is")
        return self


SIGNALS = ("rate", "lowpass", "order", "candidates", "derivative", "measured_rates", "trim", "interpolation")
SAMPLING = ("filter", "filter_order", "decimate", "dead_zone", "cut")


class SignalSettings(section_of(Preparation, *SIGNALS, own=["rate", "lowpass"])):
    """From the log to a motion."""

    rate: Number | Literal["auto"] = "auto"
    """Rate of the common clock, Hz; auto: that of the log."""
    lowpass: Number | Literal["auto", "none"] = "auto"
    """Cut-off of the zero-phase low-pass of positions, Hz; auto: the study proposes one from the training logs."""


class SamplingSettings(
    section_of(Preparation, *SAMPLING, own=["filter"], called={"filter_order": "order", "cut": "trim"})
):
    """From samples to equations."""

    filter: Number | Literal["same", "none"] = "same"
    """Low-pass of columns and measured forces, in parallel, Hz; same: that of the positions, whatever the length of the log."""


class EstimatorSettings(StudySection):
    """How parameters are estimated."""

    name: str = "wls"
    """ols, wls, robust, map, consistent, iv, oe, gauss_markov or likelihood."""
    covariance: Literal["auto", "white", "hac"] = "auto"
    """Standard deviations: auto looks at the spectrum of the residuals, white assumes uncorrelated ones, hac is Newey and West's."""
    settings: dict[str, Any] = Field(default_factory=dict)
    """Settings of that estimator, by the names of its class: {loss: tukey, iterations: 100} for robust."""
    trust: bool = False
    """Of an estimator with a prior: choose how far to trust it within the training logs, of which each quarter of the positions is
    predicted by a fit of the others and the faster half by a fit of the slower one; needs sampling: {filter: none}."""


class IdentifyAccept(StudySection):
    """Limits that the result must keep; the exit code is 1 where it misses one, or where nobody can tell.

    Errors are of forces; of a fit by simulation (estimator oe) they are of the simulated positions.
    """

    training_percent: Number | None = None
    """Largest relative error over all rows on the training logs."""
    validation_percent: Number | None = None
    """Largest relative error over all rows on the validation logs."""
    validation_std_percent: Number | None = None
    """Largest rms error over the standard deviation of the measured force, rows of one unit together, on the validation logs."""
    row_percent: dict[str, Number] = Field(default_factory=dict)
    """Row → largest relative error on the validation logs."""
    base_parameters: int | None = None
    """Number of base parameters that must be found."""
    condition: Number | None = None
    """Largest condition number."""
    well_identified: int | None = None
    """Least number of parameters with a deviation below 10 %."""
    suspicions: int | None = None
    """Most suspicions that the checks may raise."""
    verdict: Literal["good", "fair"] | None = None
    """The least grade of the verdict that will do."""


class OutputSettings(StudySection):
    """What is written besides result and report."""

    model: bool = True
    """Write the identified model back: as a model file, and as URDF where the model was one."""
    infeasible: Literal["refuse", "write"] = "refuse"
    """Whether parameters that are not physically consistent may be exported."""


class IdentifyFile(StudyFile):
    """Parameters of a machine from logs, validated on data not used for the fit."""

    kind: Literal["identify"] = "identify"  # pyright: ignore[reportIncompatibleVariableOverride]
    """What is done: veridyn identify runs it."""
    model: ModelSettings
    log: LogSettings
    training: tuple[Recording, ...] = Field(min_length=1)
    """Logs to learn from."""
    validation: tuple[Recording, ...] | Literal["none"] = ()
    """Logs to be judged by; without any, the last 30 % of each training log are kept for it. none: all samples are fitted, and whether the
    model predicts others stays unknown."""
    clock: ClockSettings = ClockSettings()
    values: ValueSettings = ValueSettings()
    signals: SignalSettings = SignalSettings()
    sampling: SamplingSettings = SamplingSettings()
    rows: str | tuple[str, ...] = "all"
    """Equations that are used: all, joints, base, actuated, or a list of names. Passive joints of closed loops have none of their own."""
    estimator: EstimatorSettings = EstimatorSettings()
    device: Literal["cpu", "cuda"] = "cpu"
    """Where samples become equations: cpu, or cuda for an NVIDIA GPU (extra gpu), which takes no filter of columns."""
    executor: Executing = "none"
    """Who shares in the work: none, local for the threads of this machine, {local: 4}, or {dask: ADDRESS} for a cluster (extra cluster)."""
    threads: int | None = Field(default=None, ge=1)
    """Threads of this machine that share in the samples of a log where executor is none: never more than it has, or than OMP_NUM_THREADS
    allows.
    Left out, all of these are used where a log is long, and up to four where columns are filtered or single equations looked at. Results do
    not depend on it."""
    friction: FrictionSettings | None = None
    """Friction of one's choice, term by term; none is tried if left out."""
    essential: EssentialSettings = EssentialSettings()
    checks: bool = True
    """Look for swapped and turned columns, wrong units, wrong gravity and the like."""
    accept: IdentifyAccept = IdentifyAccept()
    output: OutputSettings = OutputSettings()

    @model_validator(mode="after")
    def _judged_by_something(self) -> IdentifyFile:
        limits = {"validation_percent", "validation_std_percent", "row_percent"} & self.accept.model_fields_set
        if self.validation == "none" and limits:
            raise ValueError(f"validation logs, because accept has a limit for them ({', '.join(sorted(limits))})")
        return self


def check_encoder_study(study: IdentifyFile, section: str, logs: Iterable[RecordingSettings]) -> None:
    """Refuse what a study of encoders does not take: its `section` says how it is done, and logs are taken whole or between two times."""
    taken = {"model", "log", "training", "validation", section, "accept", "name", "kind", "veridyn", "seed"}
    other = sorted(study.model_fields_set - taken)
    if other:
        raise ValueError(f"no {', '.join(other)} beside {section}, which has settings of its own")
    if any(r.share != (0.0, 1.0) or r.drop or r.load is not None for r in logs):
        raise ValueError("whole logs, or start and end of them, without share, drop and load")
