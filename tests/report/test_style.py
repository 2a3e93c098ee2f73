"""Colours of curves stay apart for those who do not see all of them, on light and on dark paper."""

from __future__ import annotations

import re
from itertools import combinations

import numpy as np
import pytest

from veridyn.report.page import own_file
from veridyn.report.plots import COLOURS

# Machado, Oliveira, Fernandes (2009), A physiologically-based model for simulation of color vision deficiency, severity 1.0, linear RGB.
VISION = {
    "normal": np.eye(3),
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
}
# IEC 61966-2-1 to CIE XYZ, and the white of D65.
XYZ = np.array(
    [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]]
)
WHITE = np.array([0.95047, 1.0, 1.08883])
CURVES = ("blue", "rust", *(f"c{k}" for k in range(2, COLOURS)))
APART = (
    10.0  # CIE76 ΔE: four times the 2.3 that are just noticeable (Mahy, Van Eycken, Oosterlinck 1994), for thin lines
)


def colours(dark: bool) -> dict[str, str]:
    """Names of the style and their colours, those of dark paper over those of light."""
    parts = str(own_file("style.css")).split("@media screen and (prefers-color-scheme: dark)", 1)
    found = dict(re.findall(r"--(\w+): (#[0-9a-f]{6})", parts[0]))
    if dark:
        found |= dict(re.findall(r"--(\w+): (#[0-9a-f]{6})", parts[1][: parts[1].index("* {")]))
    return found


def lab(colour: str, vision: str) -> np.ndarray:
    srgb = np.array([int(colour[k : k + 2], 16) for k in (1, 3, 5)]) / 255.0
    linear = np.where(srgb <= 0.04045, srgb / 12.92, ((srgb + 0.055) / 1.055) ** 2.4)
    seen = np.clip(np.asarray(VISION[vision]) @ linear, 0.0, 1.0)
    ratio = XYZ @ seen / WHITE
    f = np.where(ratio > (6 / 29) ** 3, np.cbrt(ratio), ratio / (3 * (6 / 29) ** 2) + 4 / 29)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("vision", VISION)
@pytest.mark.parametrize("names", [CURVES, ("ink", "blue", "rust", "measured")])
def test_colours_of_curves_are_apart(names: tuple[str, ...], vision: str, dark: bool) -> None:
    found = colours(dark)
    near = {(a, b): np.linalg.norm(lab(found[a], vision) - lab(found[b], vision)) for a, b in combinations(names, 2)}
    assert min(near.values()) > APART, min(near.items(), key=lambda item: item[1])


def test_every_colour_is_drawn() -> None:
    style = str(own_file("style.css"))
    for k in range(2, COLOURS):
        assert f".c{k} {{ stroke: var(--c{k}); }}" in style and f".bars.c{k} {{ fill: var(--c{k}); }}" in style


def test_white_is_white() -> None:
    assert lab("#ffffff", "normal") == pytest.approx([100.0, 0.0, 0.0], abs=0.02)
