"""The door to filters on machines: a machine with sensors, a log and a method in; states with bands and virtual sensors out.

states = observe(machine, log, EKF(gate=0.999))            methods: :mod:`veridyn.observe.filters.methods`

What acts on a machine and is in its log: the same channels, by the same names, in every formulation.

    force.C             the force of the motor on the coordinate C
    NAME, NAME.x …      loads, by components where they have several
    q.C, qd.C, qdd.C    motions of prescribed coordinates
    signal.S            measured signals that laws of elements read
    wrench.B.fx … mz    wrenches on bodies, all six components

What one formulation does not take is refused by name, and what acts on nothing is reported.
"""

from __future__ import annotations

from veridyn.arguments import checked
from veridyn.errors import ModelError
from veridyn.model.experiment import Experiment
from veridyn.model.machine import Machine
from veridyn.observe.consistency.findings import warn_of_findings
from veridyn.observe.filters.filter import Filter
from veridyn.observe.measurements import Measurements
from veridyn.observe.observation import Observation
from veridyn.observe.pipeline import observation_run
from veridyn.observe.settings import ObserveSettings
from veridyn.progress import Progress, silent
from veridyn.settings import verb_with_method

OF_THE_FILTER = "It is a setting of the filter: observe(machine, log, EKF({}=…))."
GONE = {name: OF_THE_FILTER.format(name) for name in ("gate", "late", "horizon", "engine")}
GONE["filter"] = "The filter is the third argument: observe(machine, log, EKF(gate=0.999)), or a word such as 'ukf'."


@checked
@verb_with_method(ModelError, GONE)
def observe(
    machine: Machine,
    log: Experiment | Measurements,
    method: Filter | str = "ekf",
    settings: ObserveSettings | None = None,
    *,
    progress: Progress = silent,
) -> Observation:
    """Estimate the states of a machine from a log of its sensors.

    Parameters
    ----------
    machine : Machine
        The machine, open or closed, on a fixed base or a free one, in either formulation, with its sensors. ``fit.machine()`` brings the
        covariance of its identified parameters along. A car of a few numbers (formulation single_track) is observed by "ekf", "ukf" or
        "smoother" from speed, steer, ax and its sensors, and gives a ``CarObservation``, which is an ``Observation``.
    log : Experiment
        Channels by the names of the sensors' outputs and of the inputs, in the sensors' units.
    method : Filter or str
        The filter: an object such as ``EKF(gate=0.999)``, or a word for one with default settings: "linear", "error_ekf",
        "error_ekf_force", "ekf" (the default), "ukf", "smoother".
    settings : ObserveSettings, optional
        Process noise, start, unknown forces, inputs, step, estimated parameters, sensors: see :class:`ObserveSettings`.
    progress : callable (task, done, total), optional
        Called as samples are filtered.

    Returns
    -------
    Observation
        States with standard deviations over time, virtual sensors, and how far to trust them; ``print(states.summary())``.

    Warns
    -----
    DataWarning
        What limits the estimates: innovations far from as large as the filter states (NIS), readings that were not used and lie beside
        what the filter predicts for them (over horizons, and through muted sensors), a model error as large as the motion itself, sensors
        that read beside what the model expects, are refused often or never used, steps that are too long, channels that act on nothing.
        A study of kind observe reports the same.

    Raises
    ------
    ModelError
        The machine, a setting or a name cannot be used; every fault is named.
    DataError
        The log lacks a channel, or has another unit or clock than the machine expects.

    Examples
    --------
    >>> import numpy as np
    >>> import veridyn as vd
    >>> encoder = vd.Sensor("encoder", "coordinate", "q1", 1e-3)
    >>> inertia = {"1": vd.spatial.from_centre(1.0, [0.5, 0.0, 0.0], np.diag([1e-3, 0.08, 0.08]))}
    >>> rod = vd.model.Body("1", placement=vd.spatial.MDH(alpha=-np.pi / 2))
    >>> pendulum = vd.Machine.of_bodies([rod], inertia=inertia, sensors=[encoder])
    >>> released = vd.manoeuvres.Driven(1.0, 100.0, [0.3], [0.0])
    >>> log = vd.simulate(pendulum, released, rng=np.random.default_rng(0))
    >>> settings = vd.ObserveSettings(process_noise=vd.ProcessNoise(force=1e-4), start={"q1": 0.0})
    >>> states = vd.observe(pendulum, log, "ekf", settings)
    >>> states.states
    ('q1', 'q1_dot', 'force.q1')
    >>> bool(states.sigma[-1, 0] < 1e-3)
    True
    """
    states = observation_run(machine, log, method, settings, progress=progress).states
    warn_of_findings(states)
    return states
