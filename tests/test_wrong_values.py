"""A battery of wrong values for every public verb and class: each parameter in turn is something else, and the rest is a call that works.

What comes back is a result or an error of veridyn; anything else is a defect. ``pytest -m slow tests/test_wrong_values.py`` tries every
value at every parameter; the quick form draws some of them, other ones for each parameter.
"""

from __future__ import annotations

import inspect
import random
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import veridyn as vd
from public_calls import Call, calls, public_names

pytestmark = pytest.mark.filterwarnings("ignore")
WRONG: dict[str, Any] = {
    "an empty list": [],
    "None": None,
    "a word": "x",
    "NaN": float("nan"),
    "inf": float("inf"),
    "-inf": -float("inf"),
    "-1": -1,
    "0": 0,
    "a number of 41 digits": 10**40,
    "a range": range(3),
    "an object": object(),
    "an empty mapping": {},
    "a cube": np.ones((2, 3, 4)),
    "an empty array": np.zeros(0),
    "words": ["a", "b"],
    "bytes": b"x",
    "a fraction": 2.5,
    "True": True,
    "a mapping": {"x": "y"},
    "NaNs": np.full(3, np.nan),
    "a ragged list": [[1.0], [1.0, 2.0]],
    "a function of anything": lambda *_: None,
    "1j": 1j,
    "no word": "",
    "[None]": [None],
    "words and numbers": np.array(["a", 1.0], dtype=object),
}
FEW = 6  # values of each parameter that the quick form tries
# Calls that compile or search for seconds: the quick form leaves them to the slow one.
LONG = {
    "car_system",
    "car_start",
    "integrate_gradient",
    "integrate_many",
    "design_excitation",
    "design_drive_commands",
    "trust_prior",
    "close",
    "closed_motion",
    "closed_home",
    "loop_jacobian",
    "simulate",
    "Evaluator",
    "run_identify",
    "find_mistakes",
    "friction_ladder",
    "replay",
    "identify_fleet",
    "identify_resonance",
    "stribeck_speeds",
    "remedies",
    "select_motions",
    "fit_parameters",
    "tune",
    "evidence",
    "observe",
    "Observer",
    "welded",
    "rebased",
    "on_six_joints",
    "forward_derivatives",
    "inverse_derivatives",
    "jacobian",
    "mass_matrix",
    "integrate",
    "with_contacts",
    "body_motion",
    "energy",
    "c_source",
    "capabilities",
    "explain",
    "propose_cutoff",
    "essential",
    "validate",
    "carrying",
}


def parameters_of(call: Call) -> list[str]:
    kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return [name for name, p in inspect.signature(call.target).parameters.items() if p.kind in kinds]


def known(call: Call) -> bool:
    """Whether every argument that a call needs is there; a result that nobody makes by hand may have none."""
    needed = [
        n
        for n, p in inspect.signature(call.target).parameters.items()
        if p.default is p.empty and n in parameters_of(call)
    ]
    return set(needed) <= set(call.given)


def answer(call: Call, name: str, value: Any) -> str:
    """What is wrong with the answer; nothing where it is a result or an error of veridyn."""
    try:
        call.target(**{**call.given, name: value})
    except vd.VeridynError:
        return ""
    except Exception as error:  # noqa: BLE001
        return f"{call.name}({name}=…): {type(error).__name__}: {error}"
    return ""


def tried(call: Call, few: bool) -> Iterator[tuple[str, str]]:
    """Parameter and value, by their words."""
    rng = random.Random(call.name)
    for name in parameters_of(call):
        for word in rng.sample(list(WRONG), FEW if few else len(WRONG)):
            yield name, word


def defects(few: bool, chosen: Callable[[Call], bool]) -> tuple[int, list[str]]:
    count, found = 0, []
    for call in filter(chosen, calls()):
        for name, word in tried(call, few):
            count += 1
            if said := answer(call, name, WRONG[word]):
                found.append(f"{word}: {said}")
    return count, found


def test_every_public_name_has_a_call() -> None:
    """Verbs, and classes that are no results; see `public_calls`."""
    made = {call.name for call in calls() if known(call)}
    verbs = {name for name, target in public_names() if inspect.isfunction(target)}
    assert verbs <= made, f"tests/public_calls.py needs a call of {sorted(verbs - made)}"
    assert len(made) > 200


@pytest.mark.parametrize("few", [True, pytest.param(False, marks=pytest.mark.slow)], ids=["quick", "full"])
def test_wrong_values_end_in_an_error_of_veridyn(few: bool) -> None:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        count, found = defects(few, lambda call: known(call) and not (few and call.name in LONG))
    print(f"{count} calls, {len(found)} defects")
    assert not found, "\n".join(found[:40])
    assert count > (5000 if few else 25_000)


# Reported by users: bare TypeErrors and ValueErrors.
REPORTED: dict[str, Callable[[], object]] = {
    "a list of noises": lambda: vd.manoeuvres.Imperfection(noise=[]),  # pyright: ignore[reportArgumentType]
    "a list of rates": lambda: vd.Signals(rate=[]),  # pyright: ignore[reportArgumentType]
    "lines beyond counting": lambda: vd.load_log("log.csv", skip=10**40),
    "two marks": lambda: vd.load_log("log.csv", delimiter="ab"),
    "no mark": lambda: vd.load_log("log.csv", decimal=""),
    "numbers in place of logs": lambda: vd.identify(vd.load_model("veridyn:arm.yaml"), range(3)),  # pyright: ignore[reportArgumentType]
}


@pytest.mark.parametrize("call", REPORTED.values(), ids=REPORTED)
def test_what_was_reported_is_refused_by_name(call: Callable[[], object]) -> None:
    with pytest.raises(vd.VeridynError) as caught:
        call()
    fault = caught.value.faults[0]
    assert fault.where and (fault.expected or fault.hint)
