"""How a study estimates, and what came of it.

The section ``estimator`` of its file becomes a method object, with its device and who shares in the work. What is wrong with the section
is reported with its line. Nobody shares in the work, or threads of this machine, or a cluster that is asked whether it fits before any log
is read.

What comes of a study of kind identify are parameters with deviations, checked on held-out data, of any machine; of a drive what it shows
of its car, and what it does not, by name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import CancelledError, Executor, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from veridyn.errors import DataError, DeviceError, Fault, IdentificationError, did_you_mean
from veridyn.files.archive import save
from veridyn.files.yaml_reader import Place
from veridyn.identify.car_verdict import verdict_of_drive
from veridyn.identify.diagnosis.delays import Delays
from veridyn.identify.estimate import ESTIMATORS
from veridyn.identify.pipeline.identification import Estimation
from veridyn.identify.pipeline.identified import IdentificationStudy
from veridyn.identify.pipeline.loop_closing import Closing
from veridyn.identify.pipeline.study_verdict import verdict_of_study
from veridyn.identify.result import Fit
from veridyn.identify.settings import Device, IdentifySettings
from veridyn.identify.validation import Validation
from veridyn.inference.finding import FoundCause, Mistake
from veridyn.inference.verdict import Verdict
from veridyn.model.machine import Machine
from veridyn.progress import usable_threads
from veridyn.settings import names
from veridyn.studies.config.identify import EstimatorSettings, Executing, ExecutorSettings
from veridyn.studies.config.study import Loaded, dotted
from veridyn.studies.result import ParameterRow, Result, Run
from veridyn.studies.run.machine import FIT
from veridyn.symbolic.gpu import open_gpu
from veridyn.version import __version__

if TYPE_CHECKING:  # what a drive has brings compiled equations along; a design of motions needs none of the others
    from veridyn.identify.car_fit import CarFit
    from veridyn.identify.cutoff import Cutoff
    from veridyn.identify.estimators.trust import Trust
    from veridyn.identify.friction_ladder import FrictionLadder
    from veridyn.signals.drive import Line
    from veridyn.studies.run.recordings import StudyDrive

SCHEDULER_TIMEOUT_S = 10.0  # s that a scheduler may take to answer
RETRIES = 3  # times that a job is given out again whose worker died


def estimation_of(loaded: Loaded, at: Place, chosen: EstimatorSettings) -> Estimation:
    """The method and the covariance that the study file names, with settings checked as in Python."""
    kind = ESTIMATORS.get(chosen.name)
    if kind is None:
        hint = did_you_mean(chosen.name, list(ESTIMATORS))
        raise loaded.error_at((*at, "name"), f"there is no estimator '{chosen.name}'.", hint=hint)
    if chosen.settings and not names(kind):
        what = f"estimator '{chosen.name}' has no settings."
        raise loaded.error_at((*at, "settings"), what, hint="Drop the key.")
    settings = IdentifySettings(covariance=chosen.covariance, device=device_of(loaded), threads=loaded.study.threads)
    return Estimation(loaded.build((*at, "settings"), kind, chosen.settings), settings)


def device_of(loaded: Loaded) -> Device:
    """The device that the study file names; refused before any log is read where it is a GPU and there is none."""
    device: Device = loaded.study.device
    if device == "cuda":
        try:
            open_gpu()
        except DeviceError as error:
            line = loaded.yaml.line(("device",))
            raise loaded.error([replace(f, where=f"device, {f.where}", line=line) for f in error.faults]) from None
    return device


def check_estimation(loaded: Loaded, at: Place, machine: Machine, estimation: Estimation) -> None:
    """Refuse what the method cannot do with this machine and these rows, before any log is read."""
    try:
        estimation.method.check(machine, loaded.study.rows, estimation.settings.correlated)
    except (IdentificationError, DataError) as error:
        line = loaded.yaml.line(at)
        faults = [Fault(f.what, f"{dotted(at)}, {f.where}", f.expected, f.found, f.hint, line) for f in error.faults]
        raise loaded.error(faults) from None


def on_cluster(named: Executing) -> bool:
    """Whether the work goes to other machines."""
    return isinstance(named, ExecutorSettings) and named.dask is not None


@contextmanager
def executor_of(loaded: Loaded) -> Iterator[Executor | None]:
    """The executor that the study file names, closed afterwards; what is wrong with it is reported with its line."""
    named = loaded.study.executor
    if named == "none":
        yield None
        return
    if not isinstance(named, ExecutorSettings) or named.local is not None:
        threads = named.local if isinstance(named, ExecutorSettings) else usable_threads()
        with ThreadPoolExecutor(threads) as pool:
            yield pool
        return
    try:
        with dask_executor(named.dask or "", gpu=getattr(loaded.study, "device", "cpu") == "cuda") as cluster:
            yield cluster
    except DeviceError as error:
        line = loaded.yaml.line(("executor",))
        raise loaded.error(
            [Fault(f.what, f"executor, {f.where}", f.expected, f.found, f.hint, line) for f in error.faults]
        ) from error


@contextmanager
def dask_executor(address: str, gpu: bool = False) -> Iterator[Executor]:
    """The executor of a Dask cluster: it answers, has workers, and all of them have this version of veridyn, and a GPU where `gpu`.

    A cluster that is lost later, and a job whose workers all die, are errors by name.
    """
    try:
        from distributed import Client, KilledWorker
        from distributed.comm.core import CommClosedError
    except ImportError:
        hint = 'pip install "veridyn[cluster]", here and where the workers run.'
        raise DeviceError("a cluster needs Dask, which is not installed.", where=f"dask {address}", hint=hint) from None
    try:
        client = Client(address, timeout=SCHEDULER_TIMEOUT_S, set_as_default=False)
    except (OSError, TimeoutError, ValueError) as error:
        raise DeviceError(
            "the cluster does not answer.",
            where=f"dask {address}",
            expected=f"a scheduler that answers within {SCHEDULER_TIMEOUT_S:g} s",
            found=f"{type(error).__name__}",
            hint="Start one with 'dask scheduler' and workers with 'dask worker ADDRESS --nthreads 1', and look at the address.",
        ) from None
    with client:
        _check_workers(client, address)
        if gpu:
            _check_gpus(client, address)
        try:
            yield client.get_executor(pure=False, retries=RETRIES)
        except KilledWorker as error:
            raise DeviceError(
                "a job was given up, since every worker that had it died.",
                where=f"dask {address}",
                found=f"{error.allowed_failures + 1} workers, the last of them {error.last_worker.address}",
                hint="Look at the log of that worker. Too little memory is the usual cause: start workers with more, or cut the logs.",
            ) from None
        except (CancelledError, CommClosedError) as error:
            what = "the cluster was lost while it worked."
            expected = "a scheduler that answers until the end"
            found = f"{type(error).__name__}"
            hint = "Nothing was written. Start the scheduler again, and the study with it."
            raise DeviceError(what, where=f"dask {address}", expected=expected, found=found, hint=hint) from None


def _check_workers(client: Any, address: str) -> None:
    """Refuse a cluster without workers or with workers whose veridyn is another or missing."""

    def version() -> str:  # inside, so that it travels by value: a worker without veridyn could not import it
        try:
            from veridyn.version import __version__ as found
        except ImportError:
            return ""
        return found

    workers = client.run(version)
    if not workers:
        what = "the cluster has no workers."
        hint = "dask worker ADDRESS --nthreads 1"
        raise DeviceError(what, where=f"dask {address}", expected="at least one worker", found="none", hint=hint)
    other = {worker: version for worker, version in workers.items() if version != __version__}
    if other:
        listed = ", ".join(f"{worker}: {version or 'none'}" for worker, version in sorted(other.items())[:3])
        what = "workers have another veridyn than this process."
        expected = f"veridyn {__version__} on all {len(workers)} workers"
        hint = "Install the same version in the workers' environment and start them again."
        raise DeviceError(what, where=f"dask {address}", expected=expected, found=listed, hint=hint)


def _check_gpus(client: Any, address: str) -> None:
    """Refuse a cluster in which a worker has no GPU that can be used."""
    lacking = {worker: why for worker, why in client.run(_gpu_fault).items() if why}
    if lacking:
        worker, why = min(lacking.items())
        more = f", and {len(lacking) - 1} more workers" if len(lacking) > 1 else ""
        what = "a worker has no GPU that can be used."
        expected = "device: cuda on every worker"
        hint = "Start workers on machines with a GPU only, or drop device: cuda."
        raise DeviceError(what, where=f"dask {address}", expected=expected, found=f"{worker}: {why}{more}", hint=hint)


def _gpu_fault() -> str:
    """What is wrong with the GPU of this process; nothing where it can be used."""
    from veridyn.symbolic.gpu import open_gpu

    try:
        open_gpu()
    except DeviceError as error:
        return error.faults[0].what
    return ""


@dataclass(frozen=True, eq=False, kw_only=True)
class IdentifiedDrive:
    """What a drive shows of a car. `lines`: name → line of wheels and axles; `checked`: name → the same on the rest; `not_shown`: what the
    drive cannot show, and why."""

    drive: StudyDrive
    fitted: CarFit | None
    lines: Mapping[str, Line]
    checked: Mapping[str, Line]
    parameters: tuple[ParameterRow, ...]
    figures: Mapping[str, float]
    validation: Validation | None
    not_shown: Mapping[str, str]
    findings: tuple[FoundCause, ...]

    @property
    def faults(self) -> tuple[Fault, ...]:
        """The findings as sentences, and a search that did not converge."""
        return (*self.unsaid, *(Fault(str(one)) for one in (() if self.fitted is None else self.fitted.findings)))

    @property
    def unsaid(self) -> tuple[Fault, ...]:
        """Those of which the fit has not warned."""
        own, searched = ((), ()) if self.fitted is None else (self.fitted.findings, self.fitted.faults)
        return (*searched, *(Fault(str(one)) for one in self.findings if one not in own))

    def verdict(self, car: str) -> Verdict:
        """How good it is, why it is no better, and what it may be used for; `car`: its name."""
        return verdict_of_drive(car, self.fitted, self.findings, self.not_shown, self.lines, self.checked)

    def summary(self) -> str:
        """Parameters with deviations, and what the drive cannot show."""
        return "\n".join(
            f"  {p.name:<24}{p.value:14.6g} ± {p.sigma:<10.3g} {p.unit}"
            + ("" if p.name not in self.not_shown else "   not shown by this drive")
            for p in self.parameters
        )


@dataclass(frozen=True, eq=False)
class IdentifyRun:
    """What a study found. `missed`: sentences about limits of the study file that are not kept; `cutoff`: what was tried, if anything.

    `closing`: how loops were closed, where there are any; `omitted`: what was not looked for, and why. `ladder`: the friction that was
    tried, where the study asks for it; `machine` has what entered. `judged` is None of a car of a few numbers, which has a `drive`.
    """

    judged: IdentificationStudy | None
    machine: Machine
    model_file: Path
    lowpass: float | None
    cutoff: Cutoff | None
    delays: Delays
    suspicions: tuple[Mistake, ...]
    missed: tuple[str, ...]
    inputs: Mapping[str, str]
    trust: Trust[Any] | None = None
    closing: Closing | None = None
    omitted: tuple[str, ...] = ()
    ladder: FrictionLadder | None = None
    drive: IdentifiedDrive | None = None

    @property
    def study(self) -> IdentificationStudy:
        """What equations of motion have identified."""
        if self.judged is None:
            expected = "a machine of bodies and joints"
            raise DataError(
                "a drive gives no forces of joints to judge by.", where=self.machine.name, expected=expected
            )
        return self.judged

    @property
    def fit(self) -> Fit | None:
        """The parameters with their covariance; None where a drive shows lines of wheels and axles alone."""
        return self.study.fit if self.drive is None else self.drive.fitted

    def result(self, name: str, seed: int, warnings: tuple[str, ...] = ()) -> Result:
        """The record that the run folder keeps."""
        if self.drive is not None:
            d = self.drive
            told = (
                *(str(f) for f in d.unsaid),
                *(f"not shown by this drive: {n}: {x}" for n, x in d.not_shown.items()),
            )
            table = {} if d.validation is None else d.validation.table
            findings = tuple(f.record for f in d.findings)
            verdict = d.verdict(self.machine.name).against(self.missed).record
            told = (*told, *warnings)
            return Result(
                name,
                seed,
                False,
                self.inputs,
                self.figures,
                d.parameters,
                table,
                told,
                findings=findings,
                verdict=verdict,
            )
        made = self.study.result(name, seed=seed, quick=False, inputs=dict(self.inputs), warnings=warnings)
        verdict = verdict_of_study(self.study, self.missed).record
        return replace(made, figures={**made.figures, **self.figures}, verdict=verdict)

    @property
    def figures(self) -> dict[str, float]:
        """Numbers that the study adds to those of the identification; of a drive, all of them."""
        if self.drive is not None:
            return {**self.drive.figures}
        out = {"suspicions": float(len(self.suspicions)), "limits_missed": float(len(self.missed))}
        if self.lowpass is not None:
            out["lowpass"] = self.lowpass
        if self.trust is not None:
            out["prior_relative"] = self.trust.scale
            out |= {f"prior_relative_{group}": scale for group, scale in self.trust.groups.items()}
        out |= {} if self.ladder is None else self.ladder.figures
        out |= {f"delay_{c}": d for c, d in self.delays.seconds.items()}
        out |= {f"delay_{c}_sigma": d for c, d in self.delays.sigma.items()}
        return out

    def keep(self, run: Run) -> None:
        """Write what its run folder gets beside the result: the fit, and what was tried on the way."""
        if self.fit is not None:
            save(self.fit, run.folder / FIT)
        if self.cutoff is not None:
            run.write_text("cutoffs.csv", self.cutoff.table())
        if self.ladder is not None:
            run.write_text("friction.csv", self.ladder.table())
