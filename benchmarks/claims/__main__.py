"""One run; see :mod:`benchmarks.claims`."""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from benchmarks.claims import buggy, car, foreign_buggy, fourbar, hexapod, humanoid
from veridyn.errors import VeridynWarning

Case = Callable[[int, bool], Mapping[str, float]]
CASES: dict[str, Case] = {
    **car.CASES,
    **hexapod.CASES,
    **fourbar.CASES,
    **buggy.CASES,
    **humanoid.CASES,
    **foreign_buggy.CASES,
}


def figures_of(case: str, seed: int, quick: bool = False) -> dict[str, float]:
    """The figures of one run; what it warns of is in them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", VeridynWarning)
        return {name: float(value) for name, value in CASES[case](seed, quick).items()}


def main(arguments: Sequence[str]) -> int:
    """Make one run."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.claims", description=__doc__)
    parser.add_argument("case", choices=sorted(CASES))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--quick", action="store_true", help="fewer or shorter trials; no row rests on these")
    asked = parser.parse_args(arguments)
    figures = figures_of(asked.case, asked.seed, asked.quick)
    if asked.out is None:
        print("\n".join(f"{name:48} {value:.6g}" for name, value in figures.items()))
        return 0
    asked.out.mkdir(parents=True, exist_ok=True)
    content = {"case": asked.case, "seed": asked.seed, "figures": figures}
    (asked.out / "result.json").write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
