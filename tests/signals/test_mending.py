"""What is done about damage in a log, and from what size on it counts."""

from typing import get_args, get_type_hints

import numpy as np

from veridyn.model.experiment import Experiment
from veridyn.signals.mend import mended
from veridyn.signals.mending import GAP_STEPS, Mending, QualityLimits
from veridyn.signals.quality import inspect


def test_every_kind_of_damage_may_be_refused() -> None:
    words = {
        name: get_args(hint) for name, hint in get_type_hints(Mending).items() if name not in ("max_gap", "limits")
    }
    assert len(words) == 7 and all("refuse" in choice for choice in words.values())


def test_a_step_is_a_gap_from_the_limit_on() -> None:
    t = np.arange(200) / 10.0
    for steps, gaps in ((GAP_STEPS - 1.0, 0), (GAP_STEPS + 1.0, 1)):
        late = np.where(t > 10.0, t + (steps - 1.0) / 10.0, t)
        log = Experiment.from_arrays(late, {"a": np.sin(late)}, {"a": "rad"})
        assert len(inspect(log, QualityLimits()).of("gap")) == gaps
        assert len(mended(log, Mending(limits=QualityLimits(gap=10.0 * GAP_STEPS), gaps="bridge")).pieces) == 1
