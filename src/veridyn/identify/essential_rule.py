"""How a model is reduced to its essential parameters: the settings of :func:`veridyn.identify.selection.essential` as a study has them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from veridyn.settings import at_least, between

Rule = Literal["ratio_and_f_test", "ratio", "f_test"]


@dataclass(frozen=True)
class EssentialRule:
    """How a study reduces its model: a rule with its threshold and significance, or "none".

    Parameters
    ----------
    rule : {"ratio_and_f_test", "ratio", "f_test", "none"}
        When it ends. ratio (Gautier's): the largest relative deviation is at most ratio times the smallest; f_test: all removals together
        would raise the residual by more than chance; ratio_and_f_test: the ratio, or one parameter that is significant by itself; none: no
        reduced model.
    ratio : float of at least 1
        Of the largest to the smallest relative deviation; 10 to 30 are usual.
    significance : float between 0 and 1
        Of the F test: the chance of removing too little although zero is true.
    """

    rule: Rule | Literal["none"] = "ratio_and_f_test"
    ratio: Annotated[float, at_least(1.0)] = 30.0
    significance: Annotated[float, between(0.0, 1.0)] = 0.05
