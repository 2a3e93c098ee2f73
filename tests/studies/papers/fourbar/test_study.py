"""The corrected Table 2 of the thesis on the four-bar, over twenty logs none of which chose the noise; printed with `pytest -s`."""

from __future__ import annotations

import numpy as np
import pytest

from veridyn.studies.papers.fourbar.study import fourbar_study


@pytest.mark.slow
def test_errors_and_consistency_over_twenty_seeds() -> None:
    study = fourbar_study(0)
    columns = [study.column(label) for label in study.labels]
    print(
        "\nfilter            x1      y1      x2      y2      phi     xd1    yd1    phid   NIS   NEES  white inside us/step"
    )
    for s in study.scores.values():
        rms, rate = s.rms[columns], s.rms_rate[columns]
        print(
            f"{s.name:<16}"
            + "".join(f"{v:8.4f}" for v in rms)
            + "".join(f"{v:7.3f}" for v in rate[[0, 1, 4]])
            + f"{s.nis:6.3f} {s.nees:6.3f} {s.share_white:6.2f}{s.share_inside:6.2f} {s.step_microseconds:7.0f}"
        )
    print(f"plain model       x1 {study.plain_rms('x1'):.3f} m rms, {study.plain_largest('x1'):.3f} m at most")
    assert 3.95 <= study.plain_largest("x1") <= 4.0 and 1.83 <= study.plain_rms("x1") <= 1.93
    printed = study.scores["error_ekf"]
    x1, phi = study.column("x1"), study.column("phi")
    assert 0.0085 <= printed.rms[x1] <= 0.0115
    assert 0.0060 <= printed.rms[phi] <= 0.0075
    assert 0.14 <= printed.rms_rate[x1] <= 0.18
    assert 0.85 <= printed.nis <= 1.0
    for name in ("error_ekf_force", "ekf", "ukf", "smoother"):
        s = study.scores[name]
        assert s.rms[x1] <= 0.0092 and s.rms_rate[phi] <= 0.10
        assert s.share_white >= 0.9 and 0.75 <= s.nees <= 1.25
    assert study.scores["smoother"].rms[x1] < 0.5 * study.scores["ekf"].rms[x1]
    assert np.abs(study.best.example.constraint_errors()).max() < 1e-9
