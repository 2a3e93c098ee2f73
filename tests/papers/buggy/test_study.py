"""The demonstration of the buggy: every figure that programs rely on, the page, and the whole of it against its limits.

All slow: each vehicle and observer compiles equations of its own. Their quick form is test_observers.py and test_outage.py.
"""

import math

import pytest

from veridyn.papers.buggy.observers import QUANTITIES
from veridyn.papers.buggy.page import buggy_page, buggy_verdict
from veridyn.papers.buggy.study import FULL, TABLES, BuggyStudy, Extent, buggy_study

pytestmark = pytest.mark.slow
FORCE_LIMITS = {
    "x": 0.006,
    "y": 0.006,
    "xd": 0.015,
    "yd": 0.012,
    "wheel_angle": 0.008,
    "wheel_speed": 0.06,
    "yaw": 0.001,
}
FORCE_LIMITS |= {"yaw_rate": 0.0003}
BEST_LIMITS = {
    "x": 0.005,
    "y": 0.005,
    "xd": 0.008,
    "yd": 0.008,
    "wheel_angle": 0.005,
    "wheel_speed": 0.04,
    "yaw": 0.0005,
}


@pytest.fixture(scope="module")
def short() -> BuggyStudy:
    silent = (0.5, 1.2)
    return buggy_study(
        31, Extent(logs=1, duration=1.0, further=1, vehicles=1, outage=1.5, silent=silent, failing=1.0, ground=2.0)
    )


def test_every_figure_is_there(short: BuggyStudy):
    names = {f"rms_{k}_{q}{end}" for k in TABLES for q in QUANTITIES for end in ("", "_force", "_error_ekf", "_plain")}
    others = ("error_ekf_printed", "error_ekf_28", "force_alone")
    names |= {f"rms_{k}_{q}_{other}" for k in TABLES for q in QUANTITIES for other in others}
    names |= {f"rms_ground_{q}{end}" for q in QUANTITIES for end in ("", "_force", "_error_ekf", "_plain")}
    names |= {f"max_{k}_{q}{end}" for k in TABLES for q in QUANTITIES for end in ("", "_force", "_error_ekf", "_plain")}
    names |= {f"rms_ground_coarse_gps_{q}{end}" for q in QUANTITIES for end in ("", "_force", "_error_ekf", "_plain")}
    names |= {f"rms_{word}_inputs_{q}" for q in QUANTITIES for word in ("exact", "measured")}
    names |= {
        f"{size}_straight_{q}_ekf_exact" for q in QUANTITIES for size in ("rms", "max")
    }  # one further log, straight on
    names |= {f"rms_printed_{rows}_{q}" for q in QUANTITIES for rows in ("full", "116", "89", "both")}
    names |= {
        "nees",
        "nees_ground",
        "nees_ground_coarse_gps",
        "share_inside_three_sigma_outage",
        "real_time_factor_tree",
        "real_time_factor_natural",
    }
    names |= {"share_sensor_faults_named", "share_input_faults_noticed", "sensors_named_without_fault"}
    assert names <= set(short.figures)
    assert all(math.isfinite(v) for v in short.figures.values())
    result = short.result("demo buggy", 31)
    assert result.quick and result.seed == 31


def test_the_page_says_what_was_found(short: BuggyStudy):
    text = buggy_page(short, short.result("demo buggy", 31), "veridyn demo buggy --seed 31")
    for words in (
        "errorEKF",
        "Without GPS",
        "Table 5",
        "Table 6",
        "Table 7",
        "Table 8",
        "Fig. 24",
        "Rows of H as printed",
        "Measured inputs, and braking",
        "model alone",
        "was never published",
        "A sensor fails",
    ):
        assert words in text
    assert len(text) < 3_000_000
    assert buggy_verdict(short).grade in ("good", "fair", "poor")


def test_the_whole_of_it_keeps_its_limits():
    study = buggy_study(41, FULL)
    for kind in TABLES:
        for quantity, limit in FORCE_LIMITS.items():
            assert study.figures[f"rms_{kind}_{quantity}_force"] <= min(limit, TABLES[kind][quantity]), (kind, quantity)
        for quantity, limit in BEST_LIMITS.items():
            assert study.figures[f"rms_{kind}_{quantity}"] <= limit, (kind, quantity)
        for quantity in ("xd", "wheel_speed", *(("yd",) if kind == "circular" else ())):
            name = f"rms_{kind}_{quantity}"
            assert study.figures[name] <= study.figures[f"{name}_error_ekf"] / 1.5
    assert 0.75 <= study.figures["nees"] <= 1.25
    assert study.figures["share_inside_three_sigma_outage"] >= 0.95
    assert study.figures["sigma_outage_end"] <= 2.0 * study.figures["rms_outage_end"]
    assert max(study.figures["rms_coarse_gps_x"], study.figures["rms_coarse_gps_y"]) <= 0.07
    assert study.figures["rms_wrong_start_yaw"] <= 0.003
    assert study.figures["share_sensor_faults_named"] == 1.0 and study.figures["sensors_named_without_fault"] == 0.0
