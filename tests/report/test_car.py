"""The pages of studies of a car: a band and a reference for what nobody measures, and what the drive cannot show."""

from dataclasses import replace

import numpy as np

from strangers.bicycle_drive import Bicycle, write_csv
from veridyn.report.observed import observed_page, verdict_of
from veridyn.report.study import identified_page, identified_verdict
from veridyn.studies.config.study import load_study
from veridyn.studies.run.identify import run_identify
from veridyn.studies.run.observe import observe_study

MODEL = """veridyn: 2
name: Test car
car:
  {mass: 1200, front: 1.1, rear: 1.5, front_stiffness: 14, rear_stiffness: {value: 16, sigma: 2}, front_friction: {value: 1, sigma: 0.3}}
"""
HEAD = """veridyn: 1
kind: {kind}
model: {{file: model.yaml, formulation: single_track}}
log:
  file: drive.csv
  time: t [s]
  columns: {{speed: "speed [m/s]", steer: "steer [rad]", yaw_rate: "yaw_rate [rad/s]", ay: "ay [m/s^2]"}}
noise: {{slip_error: 0.001, bank: 0.001, sensors: {{yaw_rate: 0.003, ay: 0.1}}}}
"""


def test_the_pages_of_a_drive(tmp_path) -> None:
    gentle = Bicycle(duration=12.0, rate=20.0, amplitude=0.004).drive(1)
    gentle["heading"] = np.unwrap(gentle["heading"])
    write_csv(tmp_path / "drive.csv", gentle)
    (tmp_path / "model.yaml").write_text(MODEL, encoding="utf-8")
    reference = (
        'reference: {file: drive.csv, time: "t [s]", columns: {sideslip: "sideslip [rad]"}}\ncompare_linear: true\n'
    )
    (tmp_path / "o.yaml").write_text(HEAD.format(kind="observe") + reference, encoding="utf-8")
    seen = observe_study(load_study(tmp_path / "o.yaml", "observe"))
    page = observed_page(seen, seen.result("car", 0), "veridyn observe o.yaml")
    for words in (
        "Observation of “Test car”",
        "Error of the sideslip angle",
        "linear filter",
        "lateral force, front axle",
    ):
        assert words in page
    assert 'class="band' in page or "band c0" in page
    said = " ".join(verdict_of(seen).findings)
    assert "inside 2σ; a linear filter is off by " in said
    assert "° with the stiffness of the model file, which is not identified." in said
    assert seen.drive is not None
    more = replace(seen.drive, figures={**seen.figures, "rms_sideslip_linear_identified": np.radians(0.5)})
    fitted = replace(seen, drive=more)
    said = " ".join(verdict_of(fitted).findings)
    assert "a linear filter is off by 0.50° with a stiffness identified from the same drive and by " in said
    (tmp_path / "i.yaml").write_text(HEAD.format(kind="identify"), encoding="utf-8")
    found = run_identify(load_study(tmp_path / "i.yaml", "identify"))
    page = identified_page(found, found.result("car", 0), "veridyn identify i.yaml")
    assert "Not shown by this drive" in page and "far from their grip" in page
    assert identified_verdict(found).grade == "fair"
