"""What is left over by frequency: a band for what white noise does, and no spectrum of too little."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from studies.small_arm import small_study
from veridyn.report.spectra import spectrum_figures, spectrum_plot, whiteness_figures, whiteness_plot, whiteness_words


def test_a_test_of_whiteness_has_its_band_and_its_words() -> None:
    tests = small_study().whiteness
    w = tests["q1"]
    assert [c.kind for c in whiteness_plot("q1", w).curves] == ["zero", "band c1", "line c0", "dashed c1"]
    (figure,) = whiteness_figures(tests, "residuals")
    assert [p.title for p in figure.plots] == list(tests) and "residuals are correlated" in figure.caption
    assert whiteness_figures({}, "residuals") == []
    assert whiteness_words(w) == "white" and whiteness_words(None) == "–"
    assert whiteness_words(replace(w, p_value=0.0)).startswith("structure near ")


def test_a_spectrum_has_what_was_measured_and_what_is_left_over() -> None:
    trace = small_study().traces["training"]
    (figure,) = spectrum_figures(trace)
    assert [p.title for p in figure.plots] == ["q1", "q2"] and figure.plots[0].log == "xy"
    assert [c.label for c in figure.legend] == ["measured", "left over"]
    few = replace(trace, used=np.zeros_like(trace.used))
    assert spectrum_plot(few, 0) is None and spectrum_figures(few) == []
    assert spectrum_plot(replace(trace, measured=np.zeros_like(trace.measured)), 0) is None
