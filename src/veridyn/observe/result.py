"""The estimate of a filter at one time, and the history of a whole run with all that is needed to check it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri  # scipy.stats takes a second to import

from veridyn.arguments import as_array
from veridyn.arrays import Array
from veridyn.errors import DataError, did_you_mean
from veridyn.observe.measurements import Codes, Status


@dataclass(frozen=True, eq=False)
class Belief:
    """A state and the covariance of its error at the time `t`; without a time, that of the first measurement.

    `P` (n, n), or the n variances. It is checked where it is used, against the names of the system's states.
    """

    x: Array
    P: Array
    t: float | None = None

    def __post_init__(self) -> None:
        for name in ("x", "P"):
            given = getattr(self, name)
            if type(given) is not np.ndarray or given.dtype != np.float64:
                object.__setattr__(self, name, as_array(given, f"belief.{name}"))


@dataclass(frozen=True, eq=False)
class Track:
    """States `x` (N, n) at the times `t` (N,) with covariances `P` (N, n, n), and the name of what estimated them."""

    t: Array
    x: Array
    P: Array
    states: tuple[str, ...]
    filter: str

    def __len__(self) -> int:
        return len(self.t)

    @property
    def sigma(self) -> Array:
        """Standard deviations (N, n) that the filter claims."""
        return np.sqrt(np.diagonal(self.P, axis1=1, axis2=2))

    def state(self, name: str) -> Array:
        """The history (N,) of one state."""
        return self.x[:, self._at(name)]

    def band(self, name: str, level: float = 0.95) -> tuple[Array, Array]:
        """The interval (N,), (N,) that holds the state with probability `level` if the filter is consistent."""
        if not 0.0 < level < 1.0:
            raise DataError(
                "the level is not a probability.", where="band", expected="between 0 and 1", found=f"{level:g}"
            )
        k = self._at(name)
        half = float(ndtri(0.5 + level / 2.0)) * self.sigma[:, k]
        return self.x[:, k] - half, self.x[:, k] + half

    def spread(self, jacobian: ArrayLike) -> Array:
        """Deviations (N, k) of quantities computed from the state, whose derivatives are `jacobian` (N, k, n) or (k, n)."""
        J = np.broadcast_to(np.asarray(jacobian, dtype=np.float64), (len(self), *np.shape(jacobian)[-2:]))
        return np.sqrt(np.einsum("tki,tij,tkj->tk", J, self.P, J))

    def _at(self, name: str) -> int:
        if name not in self.states:
            raise DataError(f"there is no state '{name}'.", where=self.filter, hint=did_you_mean(name, self.states))
        return self.states.index(name)


@dataclass(frozen=True, eq=False)
class Estimates(Track):
    """The track after each correction; `x_predicted` and `P_predicted` before it.

    `F[k]` is the transition from k−1 to k (F[0] from the start to the first stamp), `H[k]` and `K[k]` what the sensors
    and the gain were. `innovations` and `innovation_variances` (N, m) are NaN where there was no reading, `status` says
    what became of each. `nis[k]` belongs to the `dof[k]` readings used, `log_likelihood[k]` too.
    `replayed`: late readings went back in time, so that x[k] is what was known at t[k] and not one chain of steps.
    """

    x_predicted: Array
    P_predicted: Array
    F: Array
    H: Array
    K: Array
    innovations: Array
    innovation_variances: Array
    status: Codes
    nis: Array
    dof: NDArray[np.int64]
    log_likelihood: Array
    outputs: tuple[str, ...]
    replayed: bool = False

    @property
    def last(self) -> Belief:
        """Where a further run may start."""
        return Belief(self.x[-1], self.P[-1], float(self.t[-1]))

    def counts(self) -> dict[str, dict[str, int]]:
        """For each output, how many readings were used, missing, not finite, frozen, outliers, late, withheld."""
        return {
            name: {s.name.lower(): int((self.status[:, j] == s).sum()) for s in Status}
            for j, name in enumerate(self.outputs)
        }

    def summary(self) -> str:
        """Each state with its last value and deviation, each output with what became of its readings."""
        lines = [f"{self.filter}: {len(self)} samples from {self.t[0]:.6g} s to {self.t[-1]:.6g} s"]
        if len(self.states) == self.x.shape[1]:
            lines += [f"  {n:<24}{x:14.6g} ± {s:.3g}" for n, x, s in zip(self.states, self.x[-1], self.sigma[-1])]
        for name, found in self.counts().items():
            counts = ", ".join(f"{count} {what.replace('_', ' ')}" for what, count in found.items() if count)
            lines.append(f"  {name:<24}{counts}")
        used = int(self.dof.sum())
        if used:
            lines.append(f"  NIS per reading {self.nis.sum() / used:.3f} (ideal 1)")
        return "\n".join(lines)

    def chained(self, purpose: str) -> None:
        """Refuse what needs one chain of steps when late readings broke it."""
        if self.replayed:
            raise DataError(
                f"late readings went back in time in this run, so it has no single chain of steps for {purpose}.",
                where=self.filter,
                hint='Run it again with late="use", which puts every reading at its stamp.',
            )
