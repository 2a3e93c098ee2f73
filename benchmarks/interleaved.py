"""Is this checkout slower than another one? The same calls in both, in turn, on one core.

    python -m benchmarks.interleaved OTHER_CHECKOUT [ROUNDS] [--only calls|commands]

Each round starts a process of either checkout; what is printed is the median over rounds of the time here over the time there, in seconds
of the processor. Names that are not public are looked for in the sources of each checkout, so that files may move. Calls are kernels,
integrators and observers, and `vd.identify` and `vd.observe` of a two-joint arm with defaults. Commands are `veridyn identify` and
`veridyn observe` on shipped studies of this checkout, with code compiled by a first run that does not count; those whose data
VERIDYN_DATA does not hold are named and left out.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent.parent
# Name of the command → its verb, its study, and the folder of its data; empty where the study is shipped with its log.
COMMANDS = {
    "identify, 7-joint arm": ("identify", "panda", "panda"),
    "identify, car": ("identify", "rav4", "rav4_comma"),
    "identify, drives of the Go2": ("identify", "go2", "go2"),
    "observe, crane": ("observe", "crane", ""),
    "observe, car": ("observe", "indy_yaw", "indy_av21"),
}
WORK = """
import importlib, importlib.util, json, re, sys, time, warnings
from dataclasses import replace
from pathlib import Path
import numpy as np
sys.path.insert(0, sys.argv[1] + "/tests"); sys.path.insert(0, sys.argv[1])
from benchmarks.subjects import arm, car, motion
import veridyn as vd
from veridyn.dynamics import Buffer, forward_dynamics, inverse_dynamics, regressor
observation = (vd.estimators if "estimators" in dir(vd) else vd.identification).observation
# A checkout from before IdentifySettings takes the engine by keyword.
compiled = {"settings": vd.IdentifySettings(engine="compiled")} if "IdentifySettings" in dir(vd) else {"engine": "compiled"}

def inner(name):
    src = Path(sys.argv[1], "src")
    defines = re.compile(rf"^(def|class) {name}\\b", re.M)
    home = next(f for f in src.glob("veridyn/mechanics/natural/**/*.py") if defines.search(f.read_text(encoding="utf-8")))
    return getattr(importlib.import_module(".".join(home.relative_to(src).with_suffix("").parts)), name)

def best(f, repeat):
    f()
    spent = []
    for _ in range(repeat):
        start = time.process_time(); f(); spent.append(time.process_time() - start)
    return min(spent)

out = {}
for name, tree in (("7-joint arm", arm()), ("20-dof car", car(20))):
    m, kept = motion(tree, 20000), Buffer()
    m = replace(m, forces=np.where(tree.actuated, m.forces, 0.0))
    out[name + ", inverse dynamics"] = best(lambda: inverse_dynamics(tree, m, engine="compiled", out=kept), 9)
    out[name + ", forward dynamics"] = best(lambda: forward_dynamics(tree, m, engine="compiled"), 5)
    part, other = motion(tree, 2000), Buffer()
    out[name + ", regressor"] = best(lambda: regressor(tree, part, engine="compiled", out=other), 9)
    out[name + ", streamed factors"] = best(lambda: observation(tree, m, **compiled), 3)

NaturalMethod, integrate_natural = inner("NaturalMethod"), inner("integrate_natural")
system = inner("system_of")(inner("mechanism_of")(vd.load_model("veridyn:fourbar.yaml")))
start = inner("initial_state")(system, {"phi": np.pi / 3}, {"phi": 1.0})
for name, method in (("index-3", NaturalMethod()), ("RK4", NaturalMethod("explicit", rule="RK4"))):
    how = replace(method, step=1e-3)
    out["four-bar, 4000 steps, " + name] = best(lambda: integrate_natural(system, [0.0, 4.0], start, method=how), 5)

Sensor = vd.Sensor
# A checkout from before ObserveSettings has ProcessNoise in front, and takes settings by keyword.
ProcessNoise = vd.filters.ProcessNoise if "ObserveSettings" in dir(vd) else vd.ProcessNoise
tree = arm()
noise = ProcessNoise(force=100.0, start=0.01, start_rate=0.1, start_force=10.0)
settings = {"process_noise": noise, "start": dict.fromkeys(tree.coordinates, 0.3)}
seen = replace(tree, sensors=tuple(Sensor(f"encoder_{c}", "coordinate", c, 1e-4) for c in tree.coordinates))
crank = replace(vd.load_model("veridyn:fourbar.yaml"), sensors=(Sensor("encoder", "coordinate", "phi", 1e-3),))
turning = {"process_noise": ProcessNoise(acceleration=1.0, start=0.01, start_rate=0.1), "start": {"phi": np.pi / 3}}
t = 1e-3 * np.arange(1, 1001)
rows = 0.3 + 0.05 * np.sin(2.0 * np.pi * 0.3 * t)[:, None] * np.ones(tree.n) + 1e-4 * np.random.default_rng(0).normal(size=(len(t), tree.n))

def stepped(machine, word, how, readings):
    if "ObserveSettings" in dir(vd):
        observer = vd.Observer(machine, word, vd.ObserveSettings(**how))
    else:
        observer = vd.Observer(machine, word, **how)
    for now, row in zip(t.tolist(), readings):
        observer.step(now, row)

for word in ("linear", "ekf", "ukf"):
    out["7-joint arm, 1000 steps, " + word] = best(lambda: stepped(seen, word, settings, rows), 3)
for word in ("error_ekf", "ekf", "ukf"):
    held = np.full((len(t), 1), np.pi / 3)
    out["four-bar, 1000 steps, " + word] = best(lambda: stepped(crank, word, turning, held), 3)

place = importlib.util.spec_from_file_location("made", sys.argv[2])  # the same machine and logs for either checkout
made = importlib.util.module_from_spec(place)
place.loader.exec_module(made)
warnings.simplefilter("ignore")
for way, verb in (("identify", vd.identify), ("observe", vd.observe)):
    machine, log = made.arm(), made.log(way, 0)
    out["vd." + way + ", 2-joint arm"] = best(lambda: verb(machine, log), 3)
print(json.dumps(out))
"""


def environment_of(checkout: Path) -> dict[str, str]:
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    return {**os.environ, "PYTHONPATH": str(checkout / "src"), **dict.fromkeys(names, "1")}


def timed_calls(checkout: Path) -> dict[str, float]:
    """Seconds of each call in a process of its own."""
    command = [sys.executable, "-W", "ignore", "-c", WORK, str(checkout), str(HERE / "benchmarks" / "house.py")]
    done = subprocess.run(command, env=environment_of(checkout), capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{checkout}: {done.stderr.strip().splitlines()[-1]}")
    return json.loads(done.stdout.splitlines()[-1])


def timed_commands(checkout: Path) -> dict[str, float]:
    """Seconds of each command whose data are there."""
    return {name: timed_command(checkout, *COMMANDS[name][:2]) for name in COMMANDS if has_data(COMMANDS[name][2])}


def timed_command(checkout: Path, verb: str, study: str) -> float:
    """Seconds of the processor of a command, imports and threads included."""
    file = HERE / "examples" / "studies" / f"{study}.yaml"
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-W", "ignore", "-m", "veridyn", verb, str(file), "--out", folder]
        done = subprocess.run(command, env=environment_of(checkout), capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):  # 1: the study has run, and misses a limit that it sets
        raise SystemExit(f"{checkout}, {verb} {study}: {(done.stderr or done.stdout).strip()}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def has_data(folder: str) -> bool:
    return not folder or ("VERIDYN_DATA" in os.environ and Path(os.environ["VERIDYN_DATA"], folder).is_dir())


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.interleaved")
    parser.add_argument("other", type=lambda text: Path(text).resolve())
    parser.add_argument("rounds", type=int, nargs="?", default=5)
    parser.add_argument("--only", choices=("calls", "commands"))
    given = parser.parse_args()
    if not (given.other / "src" / "veridyn").is_dir():
        parser.error(f"{given.other} is no checkout of veridyn: it has no src/veridyn.")
    if given.only != "commands":
        show([(timed_calls(HERE), timed_calls(given.other)) for _ in range(given.rounds)])
    if given.only != "calls":
        missing = [name for name, (_, _, folder) in COMMANDS.items() if not has_data(folder)]
        print("".join(f"{name:32s} left out: VERIDYN_DATA does not hold its data\n" for name in missing), end="")
        for checkout in (HERE, given.other):
            timed_commands(checkout)  # compiles
        show([(timed_commands(HERE), timed_commands(given.other)) for _ in range(given.rounds)])


def show(pairs: list[tuple[dict[str, float], dict[str, float]]]) -> None:
    for name in pairs[0][0]:
        ratios = [here[name] / there[name] for here, there in pairs]
        spread = f"{min(ratios):.3f} to {max(ratios):.3f}"
        print(
            f"{name:32s} {1e3 * pairs[0][0][name]:9.2f} ms here, ratio {statistics.median(ratios):.3f} ({spread})",
            flush=True,
        )


if __name__ == "__main__":
    main()
