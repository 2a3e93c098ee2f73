"""Who shares in the work of a study: nobody, threads of this machine, or a cluster that is asked whether it fits before any log is read."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import CancelledError, Executor, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

from veridyn.errors import DeviceError, Fault
from veridyn.studies.config.executor import Executing, ExecutorSettings
from veridyn.studies.config.study import Loaded
from veridyn.version import __version__

ANSWER_S = 10.0  # s that a scheduler may take to answer
RETRIES = 3  # times that a job is given out again whose worker died


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
        threads = named.local if isinstance(named, ExecutorSettings) else os.cpu_count()
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
        raise DeviceError(
            "a cluster needs Dask, which is not installed.",
            where=f"dask {address}",
            hint='pip install "veridyn[cluster]", here and where the workers run.',
        ) from None
    try:
        client = Client(address, timeout=ANSWER_S, set_as_default=False)
    except (OSError, TimeoutError, ValueError) as error:
        raise DeviceError(
            "the cluster does not answer.",
            where=f"dask {address}",
            expected=f"a scheduler that answers within {ANSWER_S:g} s",
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
            raise DeviceError(
                "the cluster was lost while it worked.",
                where=f"dask {address}",
                expected="a scheduler that answers until the end",
                found=f"{type(error).__name__}",
                hint="Nothing was written. Start the scheduler again, and the study with it.",
            ) from None


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
        raise DeviceError(
            "the cluster has no workers.",
            where=f"dask {address}",
            expected="at least one worker",
            found="none",
            hint="dask worker ADDRESS --nthreads 1",
        )
    other = {worker: version for worker, version in workers.items() if version != __version__}
    if other:
        listed = ", ".join(f"{worker}: {version or 'none'}" for worker, version in sorted(other.items())[:3])
        raise DeviceError(
            "workers have another veridyn than this process.",
            where=f"dask {address}",
            expected=f"veridyn {__version__} on all {len(workers)} workers",
            found=listed,
            hint="Install the same version in the workers' environment and start them again.",
        )


def _check_gpus(client: Any, address: str) -> None:
    """Refuse a cluster in which a worker has no GPU that can be used."""
    lacking = {worker: why for worker, why in client.run(_gpu_fault).items() if why}
    if lacking:
        worker, why = min(lacking.items())
        more = f", and {len(lacking) - 1} more workers" if len(lacking) > 1 else ""
        raise DeviceError(
            "a worker has no GPU that can be used.",
            where=f"dask {address}",
            expected="device: cuda on every worker",
            found=f"{worker}: {why}{more}",
            hint="Start workers on machines with a GPU only, or drop device: cuda.",
        )


def _gpu_fault() -> str:
    """What is wrong with the GPU of this process; nothing where it can be used."""
    from veridyn.symbolic.gpu import open_gpu

    try:
        open_gpu()
    except DeviceError as error:
        return error.faults[0].what
    return ""
