"""What speaks against a result: limits that are missed, possible faults with what to do about them, what the data leave open.

Each is said once on a page: what the verdict states in full has no section of its own.
"""

from __future__ import annotations

from collections.abc import Sequence

from veridyn.errors import Fault
from veridyn.inference.verdict import Reason, Verdict
from veridyn.report import listed
from veridyn.report.blocks import Block, Listing, Section, Text

MISSED = "The study file sets limits, and these are not kept."
DOUBTED = (
    "Something about the data or the model may be wrong. Until it is cleared up, the numbers below are not to be used."
)


def stated(verdict: Verdict) -> tuple[str, ...]:
    """What the head of a page says of a result."""
    return (verdict.headline, *(r.text for r in verdict.reasons), *verdict.findings)


def unstated(texts: Sequence[str], verdict: Verdict, faults: Sequence[Fault] = ()) -> list[str]:
    """Texts that neither the verdict nor the section of faults gives in full."""
    said = (*stated(verdict), *map(str, faults))
    return list(dict.fromkeys(text for text in texts if not any(text in words for words in said)))


def unlisted(texts: Sequence[str], sections: Sequence[Section]) -> list[str]:
    """Texts that no list of these sections has as an item, whatever stands before the item."""
    items = {item for s in sections for b in s.blocks if isinstance(b, Listing) for item in b.items}
    return [t for t in texts if t not in items and not any(t.endswith(f": {item}") for item in items)]


def own_reasons(verdict: Verdict) -> list[Reason]:
    """Reasons that neither the headline nor a finding gives already."""
    said = (verdict.headline, *verdict.findings)
    return [r for r in verdict.reasons if not any(r.text in words for words in said)]


def verdict_blocks(verdict: Verdict) -> list[Block]:
    """The headline and its reasons, where there is no head of a page."""
    reasons = [f"{r.kind}: {r.text}" for r in own_reasons(verdict)]
    return [Text(verdict.headline), *([Listing(reasons)] if reasons else [])]


def own_findings(verdict: Verdict, faults: Sequence[Fault]) -> list[str]:
    """Findings but for the names of faults that a section of their own describes."""
    short = {*Verdict("good", "").against(faults=named_faults(faults)).findings}
    short |= {text for f in faults for text in (f.what, f"Possible fault: {f.what}")}
    return [text for text in verdict.findings if text not in short]


def named_faults(faults: Sequence[Fault]) -> list[str]:
    """A sentence for each kind of possible fault, with the places that have it."""
    places: dict[str, list[str]] = {}
    for f in faults:
        places.setdefault(f.what, []).append(f.where)
    return [f"{where}: {what}" if (where := listed([w for w in own if w], 4)) else what for what, own in places.items()]


def missed_section(missed: Sequence[str], verdict: Verdict) -> list[Section]:
    """Limits of the study that are missed."""
    left = unstated(missed, verdict)
    return [Section("Limits that are missed", [Listing(left)], MISSED)] if left else []


def fault_section(faults: Sequence[Fault], verdict: Verdict) -> list[Section]:
    """Possible faults of data or model, in full: where, the evidence, and what to try."""
    left = unstated([str(f) for f in faults], verdict)
    return [Section("Possible faults", [Text(text) for text in left], DOUBTED)] if left else []


def open_section(directions: Sequence[object], title: str = "What the log does not determine") -> list[Section]:
    """Directions in which estimates may move together without the data showing it."""
    lead = "Directions in which the numbers may move together without the encoders showing it, and what would separate them."
    return [Section(title, [Listing([str(one) for one in directions])], lead)] if directions else []
