"""Trials of two designs, four estimators, ways to filter and cut-offs, as blocks of a page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from veridyn.arrays import Array
from veridyn.identify.estimators.likelihood import Scan
from veridyn.identify.excitation.problem import Growth
from veridyn.papers.hexapod.comparison import FilterComparison, Trials
from veridyn.papers.hexapod.trials import DesignTrials
from veridyn.report.blocks import Block, Figure, Table, Text
from veridyn.report.plots import Plot, Series, curves
from veridyn.report.words import measured, number

WORDS = {
    "ols": "least squares",
    "diagonal": "rows weighted",
    "rows": "Gauss-Markov across rows",
    "markov": "Gauss-Markov, rows and time",
}


def design_trials_blocks(both: DesignTrials, words: Mapping[str, str]) -> list[Block]:
    """Two designs and four estimators over many trials; `words`: name of a base parameter → how the paper calls it (Fig. 5, Table II)."""
    s, d = both.statistical, both.deterministic
    order = _ordered(s.names, words)
    rows = []
    for k in order:
        value, sigma = measured(float(s.truth[k]), float(s.empirical()[k]))
        other, ratio_of_sigma = number(float(d.empirical()[k]), 2), f"{s.honesty()[k]:.2f}"
        rows.append([words.get(s.names[k], s.names[k]), value, sigma, other, f"{both.ratio[k]:.2f}", ratio_of_sigma])
    table = Table(
        ["parameter", "truth", "σ, D-optimal", "σ, condition number", "ratio", "stated / empirical"],
        rows,
        f"Empirical deviations over {len(s.values['markov'])} trials of each design, estimated by Gauss-Markov across rows and in time.",
        left=(0,),
    )
    plots = [_densities(words.get(s.names[k], s.names[k]), s, d, k) for k in order[:10]]
    caption = "Normal distributions of the estimates of both designs, as in Fig. 5."
    return [Figure(plots, "Distributions of the rigid-body parameters", caption), table, *estimator_blocks(s)]


def _ordered(names: Sequence[str], words: Mapping[str, str]) -> list[int]:
    """Numbers of the parameters in the order of `words`, others behind."""
    wanted = list(words)
    return sorted(range(len(names)), key=lambda k: wanted.index(names[k]) if names[k] in words else len(wanted) + k)


def _densities(name: str, s: Trials, d: Trials, k: int) -> Plot:
    series = []
    reach = 3.0 * max(t.empirical()[k] for t in (s, d))
    for label, t, style in (("D-optimal", s, "line"), ("condition number", d, "dashed")):
        mean, sigma = float(t.values["markov"][:, k].mean()), float(t.empirical()[k])
        x = np.linspace(mean - reach, mean + reach, 160)
        series.append(
            Series(label, x, np.exp(-0.5 * ((x - mean) / sigma) ** 2) / (sigma * np.sqrt(2.0 * np.pi)), style)
        )
    return curves(name, series, "value", "density", low=True, zero=True)


def estimator_blocks(s: Trials) -> list[Block]:
    """How estimators compare: scatter, and what they state of it."""
    rows = []
    for key, word in WORDS.items():
        ratio, ratio_of_sigma = s.empirical(key) / s.empirical("ols"), s.honesty(key)
        rows.append(
            [word, f"{np.median(ratio):.3f}", f"{int((ratio < 1.0).sum())} of {len(s.names)}", *_three(ratio_of_sigma)]
        )
    ignoring = np.sqrt((s.ignoring**2).mean(axis=0)) / s.empirical("rows")
    rows.append(["Gauss-Markov across rows, memory ignored", "", "", *_three(ignoring)])
    caption = "Scatter over that of least squares (median, how many are smaller); stated over empirical deviation (median, least, largest)."
    head = ["estimator", "σ / σ of least squares", "smaller", "stated / empirical", "least", "largest"]
    return [Table(head, rows, caption, left=(0,))]


def _three(x: Array) -> list[str]:
    return [f"{np.median(x):.2f}", f"{x.min():.2f}", f"{x.max():.2f}"]


def growth_blocks(found: Sequence[Growth], words: Mapping[str, str]) -> list[Block]:
    """The choice of a friction model: cond ρ of (11) with each part that is added."""
    rows = []
    for k, one in enumerate(found):
        factor = "" if k == 0 else f"{one.condition / found[k - 1].condition:.2f}"
        pair = " and ".join(words.get(name, name) for name in one.between)
        rows.append([one.added, f"{one.parameters}", number(one.condition, 3), factor, f"{one.largest:.3f}", pair])
    worst = max(range(1, len(found)), key=lambda k: found[k].condition / found[k - 1].condition)
    text = (
        "A part that makes the condition jump is one that the motion does not separate from the rest. Here it grows from "
        f"{number(found[0].condition, 3)} to {number(found[-1].condition, 3)} with all of Table I; the largest step, "
        f"{found[worst].condition / found[worst - 1].condition:.2f} times, is by {found[worst].added}. All 24 parameters are kept."
    )
    head = ["added", "parameters", "cond ρ", "times", "largest correlation", "between"]
    caption = "Correlation of the estimates, (11), on the D-optimal motion with the noise of the trials."
    return [Table(head, rows, caption, left=(0, 5)), Text(text)]


def leakage_figure(found: FilterComparison, highest: float = 10.0) -> Figure:
    """Amplitudes of a clean period by the DFT, cut out right and wrong, up to the frequency `highest` (Hz)."""
    plots = []
    for order, what in enumerate(("position", "speed", "acceleration")):
        series = []
        for name, (f, A) in found.leakage.items():
            shown = (f > 0.0) & (f <= highest)
            series.append(Series(name, f[shown], np.maximum(A[shown, order], 1e-12), "line"))
        plots.append(curves(what, series, "frequency [Hz]", "amplitude", log_y=True))
    return Figure(
        plots,
        "Leakage of the DFT with a wrong base frequency",
        "The same motion without noise. With the right period nothing is left beyond its harmonics; with a wrong one every bin has "
        "something. The window removes what lies beyond the cut-off, but the harmonics inside it are wrong by as much: see the table.",
    )


def filter_blocks(found: FilterComparison) -> list[Block]:
    """Ways to filter in one table, and their spectra in the form of Fig. 2."""
    rows = [[r.name, number(r.prediction, 3), number(r.acceleration, 2)] for r in found.rows]
    table = Table(
        ["way", "prediction error [N]", "acceleration error [m/s²]"],
        rows,
        f"Root mean squares over {found.trials} trials; the prediction is of a circle that was not used, against the true forces.",
        left=(0,),
    )
    return [table, spectrum_figure(found), leakage_figure(found)]


def spectrum_figure(found: FilterComparison, harmonics: int = 60) -> Figure:
    """Amplitudes of a coordinate, its rate and its acceleration, for each way that was kept."""
    plots = []
    for order, what in enumerate(("position", "speed", "acceleration")):
        series = []
        for name, spectrum in found.spectra.items():
            shown = spectrum[1 : harmonics + 1, order]
            f = found.frequency * np.arange(1, len(shown) + 1)
            series.append(Series(name, f, np.maximum(shown, 1e-12), "line"))
        plots.append(curves(what, series, "frequency [Hz]", "amplitude", log_y=True))
    return Figure(
        plots,
        "Spectra",
        "First coordinate, its rate and its acceleration: the explicit filter leaves nothing behind its cut-off.",
    )


def scan_blocks(found: Scan) -> list[Block]:
    """The staircase of the cut-off: what BIC, AIC and the bare cost prefer."""
    keep, chosen = found.harmonics >= found.chosen, found.harmonics == found.chosen
    costs = {"cost (24)": found.cost, "AIC": found.aic, "BIC": found.bic}
    series = [Series(label, found.harmonics[keep], y[keep] - float(y[chosen][0])) for label, y in costs.items()]
    text = (
        f"The cost alone prefers {found.least('cost')} harmonics, AIC {found.least('aic')} and BIC {found.least('bic')}. "
        "Fewer than the chosen number cost orders of magnitude more and are not shown."
    )
    caption = "Each harmonic is one bin of the DFT: the cost is a staircase."
    return [
        Text(text),
        Figure([curves("above the chosen cut-off", series, "harmonics", "cost")], "Cut-off as an unknown", caption),
    ]
