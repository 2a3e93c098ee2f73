"""Every public verb refuses an argument of another kind by name: argument, what was expected, what was found, what to try."""

import contextlib
import importlib
import inspect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import ArrayLike

import veridyn as vd
from veridyn.argument_words import expected_of
from veridyn.arguments import ArgumentChecks, checked, kind_test
from veridyn.errors import Fault
from veridyn.mechanics.natural.description.of_machine import mechanism_of

MODULES = ("dynamics", "estimators", "manoeuvres", "files", "model", "signals", "studies", "filters")
TRAVELLING = {"Machine", "Tree", "Motion", "Experiment", "Fit", "Channel", "Path", "PathLike"}
d, i, f, s = vd.dynamics, vd.estimators, vd.files, vd.signals


def _pendulum() -> vd.Machine:
    inertia = vd.spatial.from_centre(2.0, [0.5, 0.0, 0.0], np.diag([0.01, 0.1, 0.1]))
    rod, hinge = vd.Link(name="rod", inertia=inertia), vd.Joint(name="hinge", a="ground", b="rod", actuated=True)
    return vd.Machine.build([rod], [hinge], dimension=2, sensors=[vd.Sensor("encoder", "coordinate", "hinge", 1e-3)])


t = 0.01 * np.arange(300)
q, qd, qdd = np.sin(3 * t), 3 * np.cos(3 * t), -9 * np.sin(3 * t)
robot = _pendulum()
motion = vd.Motion(t, q[:, None], qd[:, None], qdd[:, None], forces=(0.6 * qdd + 9.81 * np.cos(q))[:, None])
log = vd.Experiment.from_arrays(t, {"q.hinge": q, "force.hinge": 0.6 * qdd + 9.81 * np.cos(q)},
                                {"q.hinge": "rad", "force.hinge": "N*m"}, "bench")  # fmt: skip
fit = vd.identify(robot, motion)
limits = s.JointLimits([-1.0], [1.0], [2.0], [8.0])
driven = vd.manoeuvres.Driven(0.1, 100.0, [0.3], [0.0])
rng = np.random.default_rng(0)


class Frame:
    """Stands for a table of pandas, which is known by its name."""

    columns = ("t", "q1")


Frame.__name__ = "DataFrame"
Frame.__module__ = "pandas.core.frame"
LOAD, READ = r"veridyn\.load_model\('arm\.yaml'\)", r"veridyn\.load_log\('run\.csv'\)"
ORDER = r"(comes first|order is)"

# A newcomer's mistakes: the call, the argument that is wrong, and what the hint must say.
MISTAKES: list[tuple[str, Callable[[], object], str, str]] = [
    ("a path for the machine", lambda: vd.identify("arm.yaml", log), "machine", LOAD),
    ("a Path for the machine", lambda: vd.identify(Path("arm.yaml"), log), "machine", LOAD),
    ("a log's path for the machine", lambda: vd.identify("run.csv", log), "machine", READ),
    ("swapped", lambda: vd.identify(log, robot), "machine", ORDER),
    ("swapped with a motion", lambda: vd.identify(motion, robot), "machine", ORDER),
    ("a path for the log", lambda: vd.identify(robot, "run.csv"), "data", READ),
    ("paths for the log", lambda: vd.identify(robot, [Path("run.csv"), Path("b.csv")]), "data", READ),
    ("a model's path for the log", lambda: vd.identify(robot, "arm.yaml"), "data", LOAD),
    ("a frame for the log", lambda: vd.identify(robot, Frame()), "data", r"veridyn\.load_log\(frame"),
    ("an array for the log", lambda: vd.identify(robot, q), "data", r"veridyn\.Motion\("),
    ("arrays by name for the log", lambda: vd.identify(robot, {"q": q}), "data", r"from_arrays"),
    ("nothing for the log", lambda: vd.identify(robot, None), "data", r"veridyn\.Motion\("),
    ("a fit for the machine", lambda: vd.identify(fit, motion), "machine", r"fit\.machine\(\)"),
    ("a class for the machine", lambda: vd.identify(vd.Machine, motion), "machine", r"Machine\(…\)"),
    ("a word for the settings", lambda: vd.identify(robot, motion, "wls", "hac"), "settings", r"IdentifySettings\(…\)"),
    ("a name for fit", lambda: vd.validate("x", motion), "fit", r"veridyn\.load_model\('x'\)"),
    ("a fit's file", lambda: vd.validate("fit.json", motion), "fit", r"veridyn\.load\('fit\.json'\)"),
    ("validate swapped", lambda: vd.validate(motion, fit), "fit", ORDER),
    ("validate on a path", lambda: vd.validate(fit, "run.csv"), "data", READ),
    ("validate on a frame", lambda: vd.validate(fit, Frame()), "data", r"veridyn\.load_log\(frame"),
    ("base parameters of a path", lambda: vd.base_parameters("arm.yaml"), "machine", LOAD),
    ("base parameters of a fit", lambda: vd.base_parameters(fit), "machine", r"fit\.machine\(\)"),
    ("base parameters on a path", lambda: vd.base_parameters(robot, "run.csv"), "motion", READ),
    ("motion of a path", lambda: vd.motion(robot, "run.csv"), "log", READ),
    ("motion of a frame", lambda: vd.motion(robot, Frame()), "log", r"veridyn\.load_log\(frame"),
    ("motion of an array", lambda: vd.motion(robot, q), "log", "from_arrays"),
    ("motion of a motion", lambda: vd.motion(robot, motion), "log", "a motion already"),
    ("motion swapped", lambda: vd.motion(log, robot), "machine", ORDER),
    ("a cut-off for signals", lambda: vd.motion(robot, log, 20.0), "signals", r"veridyn\.Signals\(lowpass=20\.0\)"),
    ("the class Signals", lambda: vd.motion(robot, log, vd.Signals), "signals", r"Signals\(…\)"),
    ("inverse dynamics of arrays", lambda: vd.inverse_dynamics(robot, q, qd, qdd), "motion", r"veridyn\.Motion\("),
    ("inverse dynamics of a path", lambda: vd.inverse_dynamics("arm.yaml", motion), "machine", LOAD),
    ("parameters by name", lambda: vd.inverse_dynamics(robot, motion, "all", {"ZZ": 1}), "parameters", "The call"),
    ("forward dynamics of arrays", lambda: vd.dynamics.forward_dynamics(robot, q), "motion", r"veridyn\.Motion\("),
    ("a regressor of a path", lambda: vd.regressor(robot, Path("run.csv")), "motion", READ),
    ("columns that are no numbers", lambda: vd.regressor(robot, motion, "all", ["ZZ_rod"]), "wanted", "The call"),
    ("rows by number", lambda: vd.regressor(robot, motion, 1), "rows", "The call"),
    ("simulate a path", lambda: vd.simulate("arm.yaml", driven), "machine", LOAD),
    ("simulate a motion", lambda: vd.simulate(robot, motion), "manoeuvre", r"veridyn\.manoeuvres\.Driven"),
    ("a seed for rng", lambda: vd.simulate(robot, driven, rng=3), "rng", r"default_rng\(3\)"),
    ("observe a path", lambda: vd.observe("arm.yaml", log), "machine", LOAD),
    ("observe on a path", lambda: vd.observe(robot, "run.csv"), "log", READ),
    ("observe on a motion", lambda: vd.observe(robot, motion), "log", "a motion already"),
    ("an observer of a path", lambda: vd.Observer("arm.yaml", "ekf", vd.ObserveSettings()), "machine", LOAD),
    ("noise for settings", lambda: vd.observe(robot, log, "ekf", vd.ProcessNoise()), "settings", "one object"),
    ("design for a path", lambda: vd.design_excitation("arm.yaml", limits), "machine", LOAD),
    ("limits as a list", lambda: vd.design_excitation(robot, [1.0]), "limits", "The call"),
    ("resample a path", lambda: vd.resample("run.csv", 10.0), "data", READ),
    ("resample an array", lambda: vd.resample(q, 10.0), "data", "from_arrays"),
    ("save a machine", lambda: vd.save(robot, "a.json"), "fit", r"veridyn\.save_model\(machine, path\)"),
    ("save a log", lambda: vd.save(log, "a.json"), "fit", r"save_log\(log, path\)"),
    ("save swapped", lambda: vd.save("a.json", fit), "fit", r"save\(fit, path\)"),
    ("save nowhere", lambda: vd.save(fit, None), "path", r"save\(fit, path\)"),
    ("save_model swapped", lambda: vd.save_model("m.yaml", robot), "machine", "load_model"),
    ("save_model of a fit", lambda: vd.save_model(fit, "m.yaml"), "machine", r"fit\.machine\(\)"),
    ("load a fit", lambda: vd.load(fit), "path", r"load\(path\)"),
    ("load_model of a machine", lambda: vd.load_model(robot), "path", r"load_model\(path\)"),
    ("load_log of arrays", lambda: vd.load_log({"t": t, "q": q}), "path", "from_arrays"),
    ("load_log of a number", lambda: vd.load_log(3), "path", r"load_log\(path\)"),
    ("units as a list", lambda: vd.load_log("run.csv", units=["s", "rad"]), "units", "The call"),
    ("save_log of a motion", lambda: f.save_log(motion, "a.csv"), "experiment", "a motion already"),
    ("save_urdf of a path", lambda: f.save_urdf("arm.yaml", "a.urdf"), "machine", LOAD),
    ("a pose at a word", lambda: d.body_pose(robot, "home", "rod"), "q", "The call"),
    ("a mass matrix of a motion", lambda: d.mass_matrix(robot, motion), "q", "The call"),
    ("integrate from a word", lambda: d.integrate(robot, t, "home", [0.0]), "q", "The call"),
    ("energy of a path", lambda: d.energy(robot, "run.csv"), "motion", READ),
    ("replay swapped", lambda: i.replay(motion, robot), "machine", ORDER),
    ("explain without a name", lambda: i.explain(robot, 3), "name", "The call"),
    ("a fleet of one motion", lambda: i.identify_fleet(robot, motion), "motions", r"veridyn\.Motion\("),
    ("slow and fast of a log", lambda: i.slow_and_fast(log), "motion", r"veridyn\.motion\(machine, log\)"),
    ("inspect a path", lambda: s.inspect("run.csv"), "experiment", READ),
    ("mend a frame", lambda: s.mended(Frame()), "log", r"veridyn\.load_log\(frame"),
    ("weld by a list", lambda: vd.model.welded(robot, ["hinge"]), "locked", "The call"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "argument", "hint"), [m[1:] for m in MISTAKES], ids=[m[0] for m in MISTAKES])
def test_a_newcomers_mistake_is_answered_by_name(call: Callable[[], object], argument: str, hint: str) -> None:
    with pytest.raises(vd.VeridynError, match=hint) as caught:
        call()
    fault: Fault = caught.value.faults[0]
    assert fault.where.endswith(f"argument '{argument}'") and fault.at == ("argument", argument)
    assert fault.what and fault.expected and fault.found and fault.hint


def test_there_are_at_least_45_of_them() -> None:
    assert len(MISTAKES) >= 45


def public_functions() -> Iterator[tuple[str, Any]]:
    for name in ("", *MODULES):
        module = importlib.import_module(f"veridyn.{name}".rstrip("."))
        yield from ((f"{module.__name__}.{n}", x) for n in dir(module) if inspect.isfunction(x := getattr(module, n)))


def test_every_public_verb_has_the_door() -> None:
    """One that takes a machine, a motion, a log, a fit or a path; and the annotations of all of them can be read."""
    without = []
    for name, verb in public_functions():
        own = inspect.signature(verb).parameters.values()
        words = {word for p in own for word in f"{p.annotation}".replace("[", " ").replace("]", " ").split()}
        if words & TRAVELLING and not hasattr(verb, "door"):
            without.append(name)
        if hasattr(verb, "door"):
            assert isinstance(verb.door, ArgumentChecks) and verb.door.tests
    assert not without


WRONG = {
    "text": "arm.yaml", "path": Path("run.csv"), "none": None, "number": 20.0, "array": q, "list": [1.0, 2.0],
    "mapping": {"q1": q}, "frame": Frame(), "class": vd.Signals, "settings": vd.Signals(), "object": object(),
    "texts": ["a.csv", "b.csv"], "machine": robot, "mechanism": mechanism_of(robot), "fit": fit, "motion": motion,
}  # fmt: skip
GOOD: list[tuple[Callable[..., object], list[object]]] = [
    (vd.identify, [robot, motion]), (vd.validate, [fit, motion]), (vd.base_parameters, [robot, motion]),
    (vd.motion, [robot, log, vd.Signals()]), (vd.inverse_dynamics, [robot, motion, "all", robot.parameters.values]),
    (vd.dynamics.forward_dynamics, [robot, motion]), (vd.regressor, [robot, motion, "all", [0]]), (vd.resample, [log, 50.0]),
    (d.body_motion, [robot, motion, "rod"]), (d.body_pose, [robot, motion.q, "rod"]), (d.energy, [robot, motion]),
    (d.jacobian, [robot, motion.q, "rod"]), (d.mass_matrix, [robot, motion.q]), (d.c_source, [robot]),
    (d.inverse_derivatives, [robot, motion]), (d.actuators, [robot]), (i.replay, [robot, motion]),
    (i.explain, [robot, "ZZ_rod"]), (i.observation, [robot, motion]), (i.slow_and_fast, [motion]),
    (i.carrying, [robot, motion, "rod", np.ones(10)]), (i.with_payload, [robot, "rod"]), (s.inspect, [log]), (s.mended, [log]),
]  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("verb", "good"), GOOD, ids=[verb.__name__ for verb, _ in GOOD])
def test_no_other_kind_of_argument_ends_inside(verb: Callable[..., object], good: list[object]) -> None:
    """Each argument in turn is any other thing: the verb takes it, or refuses it with an error of the family."""
    for place in range(len(good)):
        for wrong in WRONG.values():
            with contextlib.suppress(vd.VeridynError):
                verb(*good[:place], wrong, *good[place + 1 :])


def test_a_log_is_taken_wherever_a_motion_is_meant() -> None:
    prepared = vd.motion(robot, log)
    np.testing.assert_array_equal(vd.inverse_dynamics(robot, log), vd.inverse_dynamics(robot, prepared))
    np.testing.assert_array_equal(vd.regressor(robot, motion=log), vd.regressor(robot, prepared))
    assert vd.validate(fit, log).std_error == vd.validate(fit, prepared).std_error
    assert vd.validate(robot, [log, prepared]).rows[0].samples == 2 * len(prepared)
    assert vd.base_parameters(robot, [log, prepared]).count == 3
    assert i.replay(robot, log, horizon=0.1).rows[0].rms == i.replay(robot, prepared, horizon=0.1).rows[0].rms
    found = i.select_motions(robot, {"one": log, "two": motion}, {"hinge": 1.0}, 1)
    assert found.names == i.select_motions(robot, {"one": prepared, "two": motion}, {"hinge": 1.0}, 1).names


def test_what_can_be_taken_is_taken() -> None:
    """Numbers and arrays of other libraries' kinds, settings of none, sequences that are made when they are needed."""

    class Rows(list[str]):
        pass

    assert vd.inverse_dynamics(robot, motion, Rows(["hinge"])).shape == (300, 1)
    assert d.body_pose(robot, [[np.float32(0.1)]], "rod")[1].shape == (1, 3)
    assert d.body_pose(robot, np.array([[0.1]], dtype=object), "rod")[1].shape == (1, 3)
    assert vd.resample(log, np.int64(50))["q.hinge"].rate == pytest.approx(50.0)
    made = i.MadeMotions([motion, motion], lambda m: replace(m, notes=None))
    assert i.observation(robot, made).rows[0].samples == 600


def test_a_door_keeps_the_signature_and_the_text() -> None:
    def verb(path: str | Path, times: int = 1, *, how: vd.Signals | None = None) -> str:
        """Says it."""
        return f"{path}" * times

    taken = checked(verb)
    assert inspect.signature(taken) == inspect.signature(verb) and taken.__doc__ == "Says it."
    assert taken("a", 2) == "aa" and taken(path=Path("b"), how=None) == "b"
    with pytest.raises(vd.errors.DataError, match=r"verb, argument 'times'.*\n.*a whole number, found 1\.5"):
        taken("a", 1.5)
    with pytest.raises(TypeError, match="takes from 1 to 2 positional arguments but 3 were given"):
        taken("a", 1, None)


def test_annotations_become_tests() -> None:
    truth = kind_test(bool)
    assert (
        kind_test(Any) is None
        and truth is not None
        and truth(np.True_)
        and truth(0)
        and not truth("no")
        and not truth([])
    )
    pairs = kind_test(list[tuple[str, vd.Motion]])
    assert pairs is not None and pairs([("a", motion)]) and not pairs([("a", log)]) and not pairs([("a",)])


def test_arrays_are_known_by_any_name_of_numpy() -> None:
    """A union up to NumPy 2.4, and a name for one from 2.5 on, alone and among others."""
    for hint in (ArrayLike, ArrayLike | None, ArrayLike | Callable[[float], ArrayLike]):
        test = kind_test(hint)
        assert test is not None and test([1.0]) and test(2) and not test(b"x") and not test("x") and not test(1j)
        assert expected_of(hint).startswith("an array of numbers")
    words = kind_test(Sequence[str])
    assert words is not None and words(np.array(["a"])) and not words(np.array(["a", 1.0], dtype=object))


def test_records_are_checked_as_their_own_init_says() -> None:
    """Its fields hold arrays, and it takes None."""
    assert vd.spatial.Placement(None, [1.0, 0.0, 0.0]).rotation.tolist() == np.eye(3).tolist()
    with pytest.raises(vd.errors.VeridynError, match=r"argument 'rotation'.*\n.*found the text 'x'"):
        vd.spatial.Placement("x")  # pyright: ignore[reportArgumentType]
    for wrong in (None, 5, {"q": None}):
        with pytest.raises(vd.errors.DataError, match="these are no channels"):
            vd.Experiment(wrong)  # pyright: ignore[reportArgumentType]


def test_arrays_that_are_none_are_named_by_the_types_that_hold_them() -> None:
    with pytest.raises(vd.errors.DataError, match=r"motion\.q: it is no array of numbers\.\n.*found the text 'x'"):
        vd.Motion(t, "x", qd, qdd)
    with pytest.raises(vd.errors.DataError, match=r"motion\.signals: it has no names"):
        vd.Motion(t, motion.q, motion.qd, motion.qdd, signals=[q])
    with pytest.raises(vd.errors.DataError, match=r"these are no channels.*\n.*found an array of shape \(300,\)"):
        vd.Experiment({"q": q})
    with pytest.raises(vd.errors.DataError, match="`values` has no names"):
        vd.Experiment.from_arrays(t, q, {})
    with pytest.raises(vd.errors.DataError, match="channel 'q': it is no array of numbers"):
        vd.Experiment.from_arrays(t, {"q": "x"}, {"q": "rad"})
