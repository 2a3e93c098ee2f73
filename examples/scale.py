"""How much a fleet costs: bytes, cores or GPUs, wall time and the first bottleneck, from measured costs.

    python examples/scale.py [--vehicles 100000] [--hours 1] [--rate 100] [--cores 16] [--gpus 1] [--storage 5]

One day of a fleet of cars with 20 degrees of freedom, whose 150 parameters are identified from 20 rows. Every stage works on all samples
while the others do, so the slowest one decides. The costs below were measured one by one; `benchmarks/gpu.py` measures yours.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass

CHANNELS, CHANNEL_BYTES = (
    43,
    4,
)  # of a log: 14 coordinates, 9 numbers of the chassis' motion, 14 forces and a wrench, as floats
PREPARED_BYTES = (
    8 * 71
)  # of a sample as equations take it: 42 of the joints, 9 of the chassis, 20 of forces, as doubles
MICRO, GIGA, TERA = 1e-6, 1e9, 1e12


@dataclass(frozen=True, kw_only=True)
class Costs:
    """Seconds of a core for one sample, samples a second of a GPU, and bytes a second.

    `prepare`: zero-phase filters of 43 channels and two derivatives of 14, one core of an Emerald Rapids server. `core`: regressor and
    triangular factors of all rows, the same kind of core (README). `identify`: `vd.identify` with `device="cuda"` from arrays in the host's
    memory, one process and an H200, checks and transfers included. `gpu`: the same without them, both passes, arrays on the device;
    `gpu_once`: one pass, where the condition allows it. `upload`: from pinned memory to that GPU.
    """

    prepare: float = 2.0 * MICRO
    core: float = 3.9 * MICRO
    identify: float = 3.2e6
    gpu: float = 55.8e6
    gpu_once: float = 201e6
    upload: float = 55.2 * GIGA


@dataclass(frozen=True)
class Stage:
    """What is done to all samples, and how many seconds that takes."""

    name: str
    seconds: float


@dataclass(frozen=True, kw_only=True)
class Fleet:
    """Vehicles that drive some hours a day, logged at a rate in Hz, and what computes: cores, GPUs, and storage in bytes a second."""

    vehicles: int = 100_000
    hours: float = 1.0
    rate: float = 100.0
    cores: int = 16
    gpus: int = 1
    storage: float = 5.0 * GIGA

    @property
    def samples(self) -> float:
        """Of one day."""
        return self.vehicles * self.hours * 3600.0 * self.rate

    @property
    def log_bytes(self) -> float:
        """Of one day's logs."""
        return self.samples * CHANNELS * CHANNEL_BYTES

    @property
    def prepared_bytes(self) -> float:
        """Of one day's motions, which nobody need store."""
        return self.samples * PREPARED_BYTES


def on_cores(fleet: Fleet, costs: Costs) -> list[Stage]:
    """Everything on the processors."""
    return [
        Stage("read the logs", fleet.log_bytes / fleet.storage),
        Stage("filter, differentiate, identify", fleet.samples * (costs.prepare + costs.core) / fleet.cores),
    ]


def on_gpus(fleet: Fleet, costs: Costs) -> list[Stage]:
    """Logs prepared on the cores, equations on the GPUs by `vd.identify`, one process for each."""
    return [
        Stage("read the logs", fleet.log_bytes / fleet.storage),
        Stage("filter and differentiate", fleet.samples * costs.prepare / fleet.cores),
        Stage("identify(device='cuda')", fleet.samples / costs.identify / fleet.gpus),
    ]


def at_best(fleet: Fleet, costs: Costs) -> list[Stage]:
    """The same, were the GPU given its arrays in pinned memory without any other work of the host."""
    return [
        *on_gpus(fleet, costs)[:2],
        Stage("bring samples to the GPU", fleet.prepared_bytes / costs.upload / fleet.gpus),
        Stage("regressor and factors on the GPU", fleet.samples / costs.gpu / fleet.gpus),
    ]


def slowest(stages: list[Stage]) -> Stage:
    """The first bottleneck."""
    return max(stages, key=lambda s: s.seconds)


def duration(seconds: float) -> str:
    """Seconds, minutes or hours, whichever reads best."""
    unit, size = ("h", 3600.0) if seconds >= 5400.0 else ("min", 60.0) if seconds >= 90.0 else ("s", 1.0)
    return f"{seconds / size:.1f} {unit}"


def main(fleet: Fleet | None = None, costs: Costs | None = None) -> dict[str, Stage]:
    """Print the table, and return the first bottleneck of each way."""
    fleet, costs = fleet or Fleet(), costs or Costs()
    print(
        f"{fleet.vehicles:,} vehicles, {fleet.hours:g} h a day at {fleet.rate:g} Hz: {fleet.samples:.3g} samples a day"
    )
    print(
        f"logs {fleet.log_bytes / TERA:.1f} TB a day; as motions {fleet.prepared_bytes / TERA:.1f} TB, which stream by and are not stored"
    )
    ways = {
        f"{fleet.cores} cores": on_cores(fleet, costs),
        f"{fleet.cores} cores and {fleet.gpus} GPU": on_gpus(fleet, costs),
        "the same, arrays handed over at the speed of the link": at_best(fleet, costs),
    }
    found = {}
    for way, stages in ways.items():
        found[way] = slowest(stages)
        print(f"\n{way}: {duration(found[way].seconds)}, bounded by: {found[way].name}")
        for s in stages:
            print(f"    {s.name:36s} {duration(s.seconds):>10s}")
    hours = fleet.samples * (costs.prepare + costs.core) / 3600.0
    work = fleet.samples / costs.gpu
    print(
        f"\none core alone: {hours:.0f} h, so {hours / 24.0:.1f} cores keep up with the day; one GPU has {work:.0f} s of work"
    )
    return found


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    own = Fleet()
    parser.add_argument("--vehicles", type=int, default=own.vehicles)
    parser.add_argument("--hours", type=float, default=own.hours, help="driven by each in a day")
    parser.add_argument("--rate", type=float, default=own.rate, help="samples a second")
    parser.add_argument("--cores", type=int, default=own.cores)
    parser.add_argument("--gpus", type=int, default=own.gpus)
    parser.add_argument(
        "--storage", type=float, default=own.storage / GIGA, help="gigabytes a second that logs are read with"
    )
    given = vars(parser.parse_args())
    main(Fleet(**given | {"storage": given["storage"] * GIGA}))
