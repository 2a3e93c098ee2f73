"""The gradient of a sum of squares, backwards and forwards, in one run: ``python -m benchmarks.gradients [--json]``.

The 7-joint arm of :mod:`benchmarks.running` under PD control, 2 s in steps of 1 ms, and what encoders would have read of an arm with
5 % more of everything. Backwards the gradient is by all 70 parameters, the start and the gains at once; forwards derivatives of all
positions are made by some parameters and the start, and summed; differences take one more run for each parameter. Times are those of CPU,
the least of several calls in turn.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from benchmarks.running import DURATION, KD, KP, LIMIT, LINKS, STEP, arm, reference, ticks
from veridyn.mechanics.system.compiled_run import CompiledRun, Simulated
from veridyn.mechanics.system.run_adjoint import AdjointRun
from veridyn.mechanics.system.run_blocks import Varied
from veridyn.mechanics.system.run_layout import JointControllers

Array = NDArray[np.float64]
COUNTS = (1, 10, 30, 70)  # of parameters, of which the arm has 70
CALLS = 9


def least_cpu(calls: Mapping[str, Callable[[], object]], times: int = CALLS) -> dict[str, float]:
    """Seconds of the quickest of some calls, all of them in turn."""
    found = dict.fromkeys(calls, np.inf)
    for _ in range(times):
        for name, call in calls.items():
            before = time.process_time()
            call()
            found[name] = min(found[name], time.process_time() - before)
    return found


def measured() -> dict[str, float]:
    """Milliseconds of a run, of a gradient backwards, and of one forwards by 1 … 70 parameters; by how much the two differ."""
    machine, t = arm(), ticks(DURATION)
    command, still = reference(t), np.zeros((len(t), LINKS))
    servo = JointControllers(kp=KP, ki=np.zeros(LINKS), kd=KD, limit=np.full(LINKS, LIMIT))
    start, inputs = command[0], np.column_stack([still, command])
    plain, back = CompiledRun(machine, servo=servo), AdjointRun(machine, servo=servo)
    given = STEP, start[None], still[None], {}
    seen = plain.run(*given, command=command[None], parameters=1.05 * machine.parameters.values)[0].q[0]

    def goal(run: Simulated) -> tuple[float, Array, Array]:
        off = run.q[0] - seen
        return float((off**2).sum()), np.concatenate([2.0 * off, np.zeros_like(off)], axis=1), still

    def forwards(run: CompiledRun) -> Array:
        found, S = run.run(*given, command=command[None], rows=range(LINKS))
        return 2.0 * np.tensordot(found.q[0] - seen, S[0], 2)

    spread = np.eye(len(machine.parameters))
    runs = {c: CompiledRun(machine, servo=servo, varied=Varied(spread[:, :c])) for c in COUNTS}
    calls: dict[str, Callable[[], object]] = {
        "run_ms": lambda: plain.run(*given, command=command[None]),
        "backwards_ms": lambda: back.sweep(STEP, start, inputs, goal, servo=servo),
    }
    calls |= {f"forwards_{c}_ms": lambda c=c: forwards(runs[c]) for c in COUNTS}
    first = back.sweep(STEP, start, inputs, goal, servo=servo)
    both = np.concatenate([first.parameters, first.start]), forwards(runs[COUNTS[-1]])
    for call in calls.values():
        call()  # compiled or loaded
    found = {name: 1e3 * seconds for name, seconds in least_cpu(calls).items()}
    return found | {
        "differences_cost_more_from": np.floor(found["backwards_ms"] / found["run_ms"]),
        "backwards_from_forwards": float(np.abs(both[0] - both[1]).max() / np.abs(both[1]).max()),
    }


def lines() -> list[str]:
    """What `make bench` writes."""
    found = measured()
    forwards = ", ".join(f"{found[f'forwards_{c}_ms']:.0f}" for c in COUNTS)
    return [
        f"- Gradient of a sum of squares over 2 s of the 7-joint arm under PD, 2,000 steps: {found['backwards_ms']:.0f} ms of CPU "
        f"backwards, by all 70 parameters, the start and the gains; forwards by {', '.join(map(str, COUNTS))} parameters and the start "
        f"{forwards} ms; the run {found['run_ms']:.1f} ms. Both agree to {found['backwards_from_forwards']:.0e} of the largest entry."
    ]


def main() -> None:
    """Print what is measured."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    found = measured()
    if parser.parse_args().json:
        print(json.dumps(found))
        return
    for name, value in found.items():
        print(f"{name:28} {value:.3g}")


if __name__ == "__main__":
    main()
