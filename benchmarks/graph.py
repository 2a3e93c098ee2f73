"""A machine in a training graph, beside the same recursion written in PyTorch and in JAX: ``python -m benchmarks.graph``.

    python -m benchmarks.graph [--device cuda|cpu] [--samples N] [--seed S] [--parts torch,jax] [--json FILE]

Forward and backward of inverse dynamics of the 7-joint arm in double precision: by states and one set of parameters, and by states and a
set of parameters for each sample. On a GPU times are those of CUDA events; bytes are those that must be moved once, beside a copy of the
same run. Gradients are compared with differences and with double-precision derivatives of the plain recursion. On a CPU, Pinocchio's
analytical derivatives stand beside. Each library runs in a process of its own.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.made_logs import arm  # puts tests/ on the path
from strangers.plain_recursion import PlainArm
from veridyn.model.machine import Machine

GOAL = 1e9  # samples a second: forward and backward of inverse dynamics on an H200, shared parameters
DIFFERENCES, EXACT = 1e-6, 1e-10  # gradients against differences, and against derivatives of the plain recursion
SAMPLES = {"cuda": 1 << 22, "cpu": 1 << 15}
PEER_SHARE = 16  # the plain recursions keep every intermediate number: so many times fewer samples
CHECKED = 256
REPEATS = 15
STEP = 1e-6  # of differences, against rounding of 1e-16 and curvature: an error of some 1e-10
Figures = dict[str, Any]


def states(machine: Machine, samples: int, seed: int) -> list[np.ndarray]:
    """q, q̇, q̈ (N, n) without relation."""
    rng = np.random.default_rng(seed)
    return [rng.normal(size=(samples, machine.n)) for _ in range(3)]


def relative(a: np.ndarray, b: np.ndarray) -> float:
    """The largest deviation, of the largest number."""
    return float(np.abs(a - b).max() / np.abs(b).max())


class Torch:
    """What is measured with PyTorch."""

    def __init__(self, device: str, samples: int, seed: int) -> None:
        import torch

        self.torch, self.device, self.samples, self.seed = torch, device, samples, seed
        self.machine = arm()
        self.plain = PlainArm(self.machine, torch, lambda x: torch.tensor(x, device=device))

    def tensor(self, values: np.ndarray) -> Any:
        return self.torch.tensor(values, device=self.device)

    def seconds(self, work: Callable[[], object], repeats: int = REPEATS) -> float:
        """The median time of a call: by CUDA events, or by the clock."""
        for _ in range(2):
            work()
        spent = []
        for _ in range(repeats):
            if self.device == "cuda":
                begin, end = (self.torch.cuda.Event(enable_timing=True) for _ in range(2))
                begin.record()
                work()
                end.record()
                end.synchronize()
                spent.append(begin.elapsed_time(end) * 1e-3)
            else:
                start = time.perf_counter()
                work()
                spent.append(time.perf_counter() - start)
        return sorted(spent)[len(spent) // 2]

    def leaves(self, samples: int, own: bool = False) -> list[Any]:
        given = [self.tensor(x) for x in states(self.machine, samples, self.seed)]
        phi = self.tensor(self.machine.parameters.values)
        if own:
            scatter = self.torch.linspace(0.9, 1.1, samples, dtype=phi.dtype, device=self.device)
            phi = phi * scatter[:, None]
        return [x.requires_grad_() for x in (*given, phi)]

    def both(self, law: Callable[..., Any], leaves: list[Any], weights: Any) -> Callable[[], None]:
        """Forward and ``.backward()``."""

        def work() -> None:
            for x in leaves:
                x.grad = None
            law(*leaves).backward(weights)

        return work

    def ours(self, *given: Any) -> Any:
        import veridyn.torch as vt

        return vt.inverse_dynamics(self.machine, *given)

    def lines(self) -> list[Figures]:
        found = [{"what": "gradients", **self.checked()}]
        copied = self.copy_rate()
        found.append({"what": "copy", "bytes_a_second": copied})
        shared = self.rate(self.ours, self.samples, False, copied, "inverse dynamics, shared parameters")
        found += shared
        found += self.rate(self.ours, self.samples // 4, True, copied, "inverse dynamics, parameters per sample")
        found += self.others(self.samples // 4)
        if self.device == "cuda":
            found.append({"what": "CUDA graph", **self.graph()})
        peer = self.samples // PEER_SHARE
        found += self.rate(self.plain.inverse_dynamics, peer, False, copied, "plain recursion in torch, eager")
        try:
            compiled = self.torch.compile(self.plain.inverse_dynamics)
            found += self.rate(compiled, peer, False, copied, "plain recursion in torch, torch.compile")
        except Exception as error:  # noqa: BLE001  its compiler is not everywhere
            found.append({"what": "plain recursion in torch, torch.compile", "missing": f"{type(error).__name__}"})
        if self.device == "cpu":
            found.append(self.pinocchio(min(self.samples, 4096)))
        return found

    def copy_rate(self) -> float:
        a = self.torch.empty(32 * self.samples, dtype=self.torch.float64, device=self.device).normal_()
        b = self.torch.empty_like(a)
        return 2 * 8 * len(a) / self.seconds(lambda: b.copy_(a))

    def rate(
        self, law: Callable[..., Any], samples: int, own: bool, copied: float, what: str, repeats: int = REPEATS
    ) -> list[Figures]:
        leaves, torch = self.leaves(samples, own), self.torch
        weights = torch.ones((samples, self.machine.n), dtype=torch.float64, device=self.device)
        with torch.no_grad():
            once = self.seconds(lambda: law(*leaves), repeats)
        whole = self.seconds(self.both(law, leaves, weights), repeats)
        n, p = self.machine.n, len(self.machine.parameters) if own else 0
        moved = 8 * ((3 * n + p + n) + (3 * n + p + n + 3 * n + p))
        return [
            {
                "what": f"{what}: forward",
                "rate": samples / once,
                "share_of_copy": 8 * (4 * n + p) * samples / once / copied,
            },
            {
                "what": f"{what}: forward and backward",
                "rate": samples / whole,
                "seconds": whole,
                "share_of_copy": moved * samples / whole / copied,
            },
        ]

    def others(self, samples: int) -> list[Figures]:
        import veridyn.torch as vt

        m, (q, qd, qdd, phi), found = self.machine, self.leaves(samples), []
        laws = {
            "forward dynamics": (lambda: vt.forward_dynamics(m, q, qd, qdd, phi)),
            "mass matrix": (lambda: vt.mass_matrix(m, q, phi)),
            "regressor": (lambda: vt.regressor(m, q[: samples // 4], qd[: samples // 4], qdd[: samples // 4])),
        }
        for name, law in laws.items():
            weights = self.torch.ones_like(law())

            def work(law: Callable[[], Any] = law, weights: Any = weights) -> None:
                for x in (q, qd, qdd, phi):
                    x.grad = None
                law().backward(weights)

            spent = self.seconds(work)
            found.append({"what": f"{name}: forward and backward", "rate": len(weights) / spent})
        return found

    def checked(self) -> Figures:
        """How far gradients are from differences, from the plain recursion's, and from themselves a second time."""
        torch, leaves = self.torch, self.leaves(CHECKED)
        weights = self.tensor(np.random.default_rng(self.seed + 1).normal(size=(CHECKED, self.machine.n)))
        ours = torch.autograd.grad((self.ours(*leaves) * weights).sum(), leaves)
        again = torch.autograd.grad((self.ours(*leaves) * weights).sum(), leaves)
        theirs = torch.autograd.grad((self.plain.inverse_dynamics(*leaves) * weights).sum(), leaves)
        exact = max(relative(a.cpu().numpy(), b.cpu().numpy()) for a, b in zip(ours, theirs, strict=True))
        worst, rng = 0.0, np.random.default_rng(self.seed + 2)
        with torch.no_grad():
            for k, (x, gradient) in enumerate(zip(leaves, ours, strict=True)):
                along = self.tensor(rng.normal(size=tuple(x.shape)))
                ends = [[*leaves[:k], x + side * STEP * along, *leaves[k + 1 :]] for side in (1.0, -1.0)]
                # sample by sample, so that no sum hides a sample's error
                high, low = ((self.plain.inverse_dynamics(*end) * weights).sum(-1) for end in ends)
                slope, own = (high - low) / (2.0 * STEP), (gradient * along).sum(-1)
                slope = slope if own.ndim else slope.sum()
                worst = max(worst, relative(own.cpu().numpy(), slope.cpu().numpy()))
        same = all(torch.equal(a, b) for a, b in zip(ours, again, strict=True))
        return {"differences": worst, "plain_recursion": exact, "repeats_to_the_last_bit": same}

    def graph(self) -> Figures:
        """Forward and backward captured once and replayed on other states."""
        torch, leaves = self.torch, self.leaves(CHECKED)
        weights = torch.ones((CHECKED, self.machine.n), dtype=torch.float64, device="cuda")
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                torch.autograd.grad(self.ours(*leaves), leaves, weights)
        torch.cuda.current_stream().wait_stream(side)
        captured = torch.cuda.CUDAGraph()
        with torch.cuda.graph(captured):
            gradients = torch.autograd.grad(self.ours(*leaves), leaves, weights)
        with torch.no_grad():
            leaves[0].add_(0.3)
        captured.replay()
        expected = torch.autograd.grad(self.ours(*leaves), leaves, weights)
        return {"equal": all(torch.equal(a, b) for a, b in zip(gradients, expected, strict=True))}

    def pinocchio(self, samples: int) -> Figures:
        """Derivatives by states and the regressor, one state a call, from Pinocchio's own arrays."""
        try:
            pin: Any = importlib.import_module("pinocchio")

            from strangers.pinocchio_oracle import PinModel
        except ImportError:
            return {"what": "Pinocchio", "missing": "pinocchio"}
        model = PinModel(self.machine).model
        data, given = model.createData(), states(self.machine, samples, self.seed)

        def work() -> None:
            for q, qd, qdd in zip(*given, strict=True):
                pin.computeRNEADerivatives(model, data, q, qd, qdd)
                pin.computeJointTorqueRegressor(model, data, q, qd, qdd)

        return {"what": "Pinocchio: RNEA derivatives and regressor, a core", "rate": samples / self.seconds(work, 5)}


class Jax:
    """What is measured with JAX."""

    def __init__(self, device: str, samples: int, seed: int) -> None:
        os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
        if device == "cpu":
            os.environ["JAX_PLATFORMS"] = "cpu"
        import jax

        jax.config.update("jax_enable_x64", True)
        self.jax, self.device, self.samples, self.seed = jax, device, samples, seed
        self.machine = arm()
        self.plain = PlainArm(self.machine, jax.numpy, jax.numpy.asarray)

    def ours(self, *given: Any) -> Any:
        import veridyn.jax as vj

        return vj.inverse_dynamics(self.machine, *given)

    def lines(self) -> list[Figures]:
        found = [{"what": f"JAX {self.jax.__version__} on {self.jax.devices()[0].platform}", **self.checked()}]
        laws = (
            (self.ours, self.samples, "veridyn.jax, shared parameters"),
            (self.plain.inverse_dynamics, self.samples // PEER_SHARE, "plain recursion in JAX, jit"),
        )
        for law, samples, what in laws:
            spent = self.seconds(partial(self.both(law), *self.given(samples)))
            found.append({"what": f"{what}: forward and backward", "rate": samples / spent})
        return found

    def given(self, samples: int) -> list[Any]:
        put = self.jax.device_put
        return [*(put(x) for x in states(self.machine, samples, self.seed)), put(self.machine.parameters.values)]

    def both(self, law: Callable[..., Any]) -> Callable[..., Any]:
        """Outputs and the gradient of their sum, in one program."""

        def work(*given: Any) -> Any:
            y, back = self.jax.vjp(law, *given)
            return y, back(self.jax.numpy.ones_like(y))

        return self.jax.jit(work)

    def seconds(self, work: Callable[[], Any]) -> float:
        self.jax.block_until_ready(work())
        spent = []
        for _ in range(REPEATS):
            start = time.perf_counter()
            self.jax.block_until_ready(work())
            spent.append(time.perf_counter() - start)
        return sorted(spent)[REPEATS // 2]

    def checked(self) -> Figures:
        given = self.given(CHECKED)
        ours, theirs = (self.both(law)(*given) for law in (self.ours, self.plain.inverse_dynamics))
        pairs = zip(self.jax.tree.leaves(ours), self.jax.tree.leaves(theirs), strict=True)
        return {"plain_recursion": max(relative(np.asarray(a), np.asarray(b)) for a, b in pairs)}


def shown(figures: Figures) -> str:
    parts = []
    for name, value in figures.items():
        if name == "rate":
            parts.append(f"{value / 1e6:,.2f} million samples/s")
        elif name == "share_of_copy":
            parts.append(f"{100.0 * value:.0f} % of copying")
        elif name != "what":
            parts.append(
                f"{name.replace('_', ' ')} {value:.3g}"
                if isinstance(value, float)
                else f"{name.replace('_', ' ')} {value}"
            )
    return f"{figures['what']:<70} {', '.join(parts)}"


def verdict(found: list[Figures]) -> str:
    """The closing line: the figure that is asked for, and whether gradients are right."""
    checks = next((f for f in found if f["what"] == "gradients"), {})
    right = checks.get("differences", 1.0) < DIFFERENCES and checks.get("plain_recursion", 1.0) < EXACT
    rates = [f["rate"] for f in found if f["what"] == "inverse dynamics, shared parameters: forward and backward"]
    rate = f"{rates[0] / 1e9:.3f}e9" if rates else "no"
    return f"forward and backward, shared parameters: {rate} samples/s (goal 1e9 on an H200); gradients {'agree' if right else 'DIFFER'}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--samples", type=int)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--parts", default="torch,jax")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--one", choices=("torch", "jax"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    samples = given.samples or SAMPLES[given.device]
    if given.one:
        print(json.dumps({"torch": Torch, "jax": Jax}[given.one](given.device, samples, given.seed).lines()))
        return
    found: list[Figures] = []
    for part in given.parts.split(","):
        command = [sys.executable, "-m", "benchmarks.graph", "--one", part, "--device", given.device]
        done = subprocess.run(
            [*command, "--samples", str(samples), "--seed", str(given.seed)],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            print(f"{part}: failed\n{done.stderr[-3000:]}")
            continue
        found += json.loads(done.stdout.splitlines()[-1])
    for figures in found:
        print(shown(figures))
    print(verdict(found))
    if given.json:
        given.json.write_text(json.dumps(found, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
