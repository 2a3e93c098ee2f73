"""Samples that an electrical fault made, bridged from their neighbours: spikes and short dropouts to zero.

x of a spike or dropout becomes the straight line between the last sample before it and the first behind it. Nothing else changes: a frozen
stretch is too long for a line, and clipped values are not known.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from veridyn.model.experiment import Channel
from veridyn.signals.findings import Finding
from veridyn.signals.outliers import dropouts, spikes

Array = NDArray[np.float64]
REPAIRABLE = ("spike", "dropout")  # kinds of findings


def damaged(x: Array, spike: float, kinds: tuple[str, ...] = REPAIRABLE) -> NDArray[np.intp]:
    """Indices of the samples of a signal (N,) that are spikes (`spike` as in ``QualityLimits``) or belong to a dropout."""
    hit = [spikes(x, spike)] if "spike" in kinds else []
    if "dropout" in kinds:
        hit += [np.arange(a, b + 1) for a, b in dropouts(x)]
    return np.unique(np.concatenate([np.empty(0, dtype=np.intp), *hit]))


def repaired(channel: Channel, spike: float, kinds: tuple[str, ...] = REPAIRABLE) -> Channel:
    """The channel with damaged samples bridged; the same object where there are none."""
    x = channel.values
    bad = damaged(x, spike, kinds) if len(x) > 4 else []
    if not len(bad):
        return channel
    good = np.delete(np.arange(len(x)), bad)
    whole = x.copy()
    whole[bad] = np.interp(channel.t[bad], channel.t[good], x[good])
    return replace(channel, values=whole)


def note(finding: Finding) -> str:
    """What was done about a finding, in words."""
    what = {"spike": "spike(s)", "dropout": "sample(s) of dropouts to zero"}[finding.kind]
    return (
        f"repaired: {finding.count} {what} of channel '{finding.channel}', first at t = {finding.t_start:.6f} s, "
        "bridged from the neighbours"
    )
