"""The page of observers: one file, with every section, every filter, an animation, and a verdict that follows the numbers."""

from __future__ import annotations

import json
import re

from papers.small_crane import small_crane
from veridyn.papers.fourbar_page import observation_page, observation_verdict


def test_the_page_holds_everything() -> None:
    study = small_crane()
    result = study.result("small crane", seed=1, quick=True, inputs={})
    text = observation_page(study, result, "veridyn demo small", "Observers on a crane")
    for part in (
        "Observers on a crane",
        "Innovations",
        "Consistency",
        "Unmeasured quantities",
        "smoother (RTS)",
        "player",
    ):
        assert part in text
    scene = json.loads(re.search(r'<script type="application/json">(.*?)</script>', text, re.DOTALL)[1])
    meant = {"truth": "truth", "observer": "estimate", "model alone": "plain"}
    assert {layer["label"]: layer["meaning"] for layer in scene["layers"]} == meant
    for label, meaning in meant.items():  # the same colour in every plot as in the animation
        drawn = set(re.findall(rf'<path class="(?:line|thick|dashed|dots) (\w+)" data-series="{label}"', text))
        assert drawn == {meaning}
    assert "http://" not in text.replace("http://www.w3.org", "") and len(text) < 3e6


def test_the_verdict_follows_the_numbers() -> None:
    assert observation_verdict(small_crane()).grade in ("good", "fair", "poor")
    assert "NEES per state" in observation_verdict(small_crane()).findings[-1]
