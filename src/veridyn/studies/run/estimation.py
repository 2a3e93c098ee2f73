"""How a study estimates: the section ``estimator`` of its file as a method object, its device, and who shares in the work.

What is wrong with the section is reported with its line. Nobody shares in the work, or threads of this machine, or a cluster that is asked
whether it fits before any log is read.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import CancelledError, Executor, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from veridyn.errors import DataError, DeviceError, Fault, IdentificationError, did_you_mean
from veridyn.files.yaml_reader import Place
from veridyn.identify.estimate import ESTIMATORS
from veridyn.identify.settings import Device, IdentifySettings
from veridyn.model.machine import Machine
from veridyn.settings import names
from veridyn.studies.config.identify import EstimatorSettings, Executing, ExecutorSettings
from veridyn.studies.config.study import Loaded, dotted
from veridyn.studies.identification import Estimation
from veridyn.symbolic.gpu import open_gpu
from veridyn.threads import usable_threads
from veridyn.version import __version__

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
