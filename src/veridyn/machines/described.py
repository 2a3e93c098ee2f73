"""Machines whose files come with veridyn, each read once in a process: a machine never changes.

With closed loops: a four-bar linkage, a delta robot and an arm with a parallelogram. In natural coordinates: a closed mechanism in space
with three degrees of freedom, and a crane.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from veridyn.files.access import PREFIX, shipped
from veridyn.files.machine.load import parse_machine
from veridyn.model.machine import Machine
from veridyn.observe.filters.filter import Filter
from veridyn.observe.filters.methods import filter_of
from veridyn.observe.observer_setup import ObserverSetup
from veridyn.observe.process_noise import ProcessNoise
from veridyn.observe.settings import ObserveSettings


@cache
def described(file: str) -> Machine:
    """The machine of a model file that comes with veridyn, such as "arm.yaml"."""
    return parse_machine(shipped(PREFIX + file).read_text(encoding="utf-8"), source=file)


def linkage() -> Machine:
    """A planar four-bar linkage, driven at the crank: one degree of freedom."""
    return described("linkage.yaml")


def delta() -> Machine:
    """A delta robot with its twelve rods' joints: three degrees of freedom of 21 coordinates."""
    return described("delta.yaml")


def palletizer() -> Machine:
    """An arm whose forearm is driven from the shoulder through a parallelogram: three degrees of freedom."""
    return described("palletizer.yaml")


def spatial() -> Machine:
    """Two arms that hold a rod between them, as its file describes it: independent coordinates `shoulder`, `elbow` and `base_b`."""
    return described("spatial.yaml")


def crane() -> Machine:
    """A trolley and a swinging load: independent coordinates `x` and `swing`."""
    return described("crane.yaml")


@dataclass(frozen=True)
class Walk:
    """A mechanism whose motors push with forces that walk at random: exactly what a filter that estimates these forces supposes.

    `process_noise`: densities of the walk, and how far the start may be off; the true start is drawn from that.
    """

    process_noise: ProcessNoise
    motors: tuple[str, ...]
    independents: tuple[str, ...]
    samples: int
    step: float

    def setup(self, method: Filter | str) -> ObserverSetup:
        """These settings with a filter."""
        settings = ObserveSettings(
            process_noise=self.process_noise, independents=self.independents, unknown=self.motors, model_error="off"
        )
        return ObserverSetup(filter_of(method, "observe"), settings)


CRANE = Walk(
    ProcessNoise(force=400.0, start=0.05, start_rate=0.05, start_force=20.0), ("motor",), ("x", "swing"), 500, 0.02
)
