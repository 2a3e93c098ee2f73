"""``filter: same`` on a short log, the shipped wrist: one filter for positions and equations, and deviations that hold."""

import warnings
from pathlib import Path

from veridyn.errors import IdentificationWarning
from veridyn.studies.config.study import load_study
from veridyn.studies.run.identify import run_identify

STUDIES = Path(__file__).parents[3] / "examples" / "studies"


def test_a_tenth_of_the_wrists_log_passes_the_filter_of_its_positions(tmp_path: Path) -> None:
    """At 10 Hz it has fewer than the 100 independent equations that 25 base parameters want; the equations passed 73 Hz once."""
    text = (STUDIES / "wrist.yaml").read_text(encoding="utf-8")
    changes = {
        "sampling: {filter: none, dead_zone: 0.02}": "sampling: {dead_zone: 0.02}",
        "share: [0, 0.7]": "share: [0, 0.1]",
        "file: wrist": f"file: {STUDIES.as_posix()}/wrist",
    }
    for old, new in changes.items():
        assert old in text
        text = text.replace(old, new)
    (tmp_path / "short.yaml").write_text(text, encoding="utf-8")
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        run = run_identify(load_study(tmp_path / "short.yaml"))
    settings = run.study.settings
    assert settings["filter of the equations"] == settings["filter of the positions"]
    assert settings["filter of the positions"].startswith("Butterworth low-pass, 10 Hz")
    texts = [str(w.message) for w in said if issubclass(w.category, IdentificationWarning)]
    assert any("the low-pass of the equations at 10 Hz leaves few independent ones" in t for t in texts)
    assert any("the spectrum of the residuals" in note for note in run.study.fit.notes)  # deviations allow for it
    assert not run.suspicions
