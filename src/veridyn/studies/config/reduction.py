"""Settings of ``kind: identify`` that choose a model by data: friction term by term, and parameters that may go."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from veridyn.identify.friction.terms import TERMS, Term
from veridyn.studies.config.study import Number, StudySection


class EssentialSettings(StudySection):
    """Which parameters a reduced model leaves out: those with the largest relative deviation, one by one."""

    rule: Literal["ratio_and_f_test", "ratio", "f_test", "none"] = "ratio_and_f_test"
    """When it ends. ratio (Gautier's): the largest relative deviation is at most ratio times the smallest; f_test: all removals together
    would raise the residual by more than chance; ratio_and_f_test: the ratio, or one parameter that is significant by itself; none: no
    reduced model."""
    ratio: Number = Field(default=30.0, ge=1.0)
    """Of the largest to the smallest relative deviation; 10 to 30 are usual."""
    significance: Number = Field(default=0.05, gt=0.0, lt=1.0)
    """Of the F test: the chance of removing too little although zero is true."""


class FrictionSettings(StudySection):
    """A friction ladder: terms enter the model one by one, each only if the error on held-out training data falls by more than its
    standard error."""

    terms: tuple[Term, ...] = TERMS
    """What is tried: viscous and coulomb first, then on each coordinate the term under which the error falls most."""
    on: tuple[str, ...] = ()
    """Coordinates; those with a motor if left out."""
    temperature: str | dict[str, str] = ""
    """The signal of the term temperature: the column signal.NAME; one for all, or coordinate → signal."""
    blocks: int = Field(default=40, ge=10)
    """Into how many blocks the training samples are cut; a block must be longer than residuals are correlated. Behind a low-pass of the
    equations short logs have fewer, which is noted."""
    standard_errors: Number = Field(default=1.0, ge=0.0)
    """By how many of its standard errors the held-out error must fall."""
