"""Eight seconds of measured logs with ``filter: same``: the equations pass the filter of the positions, or the study says otherwise."""

import warnings
from pathlib import Path

import pytest

from real_logs import folder
from veridyn.errors import IdentificationWarning
from veridyn.studies.config.study import load_study
from veridyn.studies.run.identify import run_identify

STUDIES = Path(__file__).parents[2] / "examples" / "studies"
PANDA = ", ".join(
    f'{part}: "${{VERIDYN_DATA}}/panda/exciting_traj_{file}.txt"'
    for part, file in (("clock", "time"), ("positions", "positions"), ("torques", "torques"))
)
LOGS = {  # what is recorded, and the rate in Hz
    "ur10e": ('file: "${VERIDYN_DATA}/ur10e/ur-20_02_10-30sec_12harm.csv", start: 1025, end: 1033', 100),
    "panda": (f"files: {{{PANDA}}}, start: 5, end: 13", 1000),
}


def short_study(name: str, out: Path) -> Path:
    """The shipped study of eight seconds of a training log, with default sampling and nothing held out."""
    text = (STUDIES / f"{name}.yaml").read_text(encoding="utf-8")
    head = text[: text.index("training:")].replace("file: panda_model", f"file: {STUDIES.as_posix()}/panda_model")
    log, rate = LOGS[name]
    tail = f"signals: {{rate: {rate}, lowpass: 5}}\nsampling: {{dead_zone: 0.05}}\nchecks: false\n"
    (out / "short.yaml").write_text(f"{head}training: [{{{log}}}]\nvalidation: none\n{tail}", encoding="utf-8")
    return out / "short.yaml"


@pytest.mark.parametrize("name", LOGS)
def test_the_same_filter_is_that_of_the_positions(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VERIDYN_DATA", str(folder(name).parent))
    loaded = load_study(short_study(name, tmp_path))
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        settings = run_identify(loaded).study.settings
    assert settings["filter of the equations"] == settings["filter of the positions"]
    assert settings["filter of the positions"].startswith("Butterworth low-pass, 5 Hz")
    few = [str(w.message) for w in said if issubclass(w.category, IdentificationWarning)]
    assert any("low-pass of the equations at 5 Hz leaves few independent ones" in text for text in few)
