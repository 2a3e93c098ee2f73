"""Pages, figures and tables that show a run; one file that opens offline. Here: its words."""

from __future__ import annotations

from veridyn.wording import count as count
from veridyn.wording import like as like
from veridyn.wording import listed as listed
from veridyn.wording import measured as measured
from veridyn.wording import number as number
from veridyn.wording import percent as percent
from veridyn.wording import superscript as superscript
from veridyn.wording import unit_text as unit_text
from veridyn.wording import units_in as units_in

FILTER_WORDS = {
    "linear": "linear Kalman",
    "error_ekf": "errorEKF",
    "error_ekf_force": "errorEKF with forces",
    "ekf": "EKF, exact derivatives",
    "ukf": "UKF",
    "smoother": "smoother (RTS)",
}
