import numpy as np
import pytest
from scipy.spatial import ConvexHull

from report.test_page import Balance
from veridyn.errors import DataError, ReportWarning, VeridynError
from veridyn.inference.verdict import Verdict
from veridyn.report.blocks import Animation, Block, Code, Figure, Heat, Key, Listing, Section, Table, Text, attempted
from veridyn.report.page import page
from veridyn.report.plots import Series, bars, curves, heat
from veridyn.studies.result import Result
from veridyn.view.scene import Layer, scene


def everything() -> str:
    t = np.linspace(0.0, 2.0, 100)
    one = curves(
        "one", [Series("sine", t, np.sin(t), band=(np.sin(t) - 0.1, np.sin(t) + 0.1))], "time, s", "angle, rad"
    )
    two = bars("two", ["p", "q", "r"], {"before": [1, 2, 3], "after": [0.5, 1, 0.2]}, "error, %")
    points = np.stack([np.zeros((100, 3)), np.stack([np.sin(t), 0 * t, -np.cos(t)], axis=1)], axis=1)
    rng = np.random.default_rng(4)
    sections = [
        Section(
            "Words", [Text("a <b>bold</b> claim"), Listing(["first", "second"]), Code("veridyn --help")], "A lead."
        ),
        Section("Numbers", [Table(("name", "value", "remark"), [("mass", "1.0", "good")], "A caption.", left=(2,))]),
        Section("Pictures", [Figure([one, two], "Both", "Side by side."), Figure([one])]),
        Section("Matrix", [Heat(heat("Correlation", np.corrcoef(rng.normal(size=(6, 20))), "abcdef", "abcdef"))]),
        Section(
            "Motion", [Animation(scene(t, [Layer("rod", points, [(0, 1)], trails=[1])], "A pendulum"), "Drag to turn.")]
        ),
    ]
    judged = Verdict("good", "It works.", ("One finding.",), ("this",), ("that",))
    result = Result("a study", 1, False, {"log": "ab" * 32}, {"x": 1.0}, (), {}, ("odd <i>thing</i>",))
    return page("A title", judged, [Key("3", "things")], sections, result, "veridyn demo x", {"filter": "none"})


def test_every_kind_of_block_is_set_well_formed_and_escaped() -> None:
    text = everything()
    parser = Balance()
    parser.feed(text)
    assert parser.open == []
    assert "a &lt;b&gt;bold" in text and "odd &lt;i&gt;" in text
    assert text.count("<figure") == 4 and text.count("<canvas") == 1 and "requestAnimationFrame" in text
    for wanted in ("A lead.", "A caption.", "Drag to turn.", "veridyn demo x", "filter", "It works.", "One finding."):
        assert wanted in text


def test_it_needs_nothing_from_outside() -> None:
    text = everything()
    for outside in ("<link", "<img", "src=", 'href="h', "@import", "url(", "http://", "https://"):
        assert outside not in text


def test_a_table_with_a_short_row_is_refused() -> None:
    with pytest.raises(VeridynError, match=r"row 0 \(mass\).*\n.*2 cells, found 1"):
        Table(("a", "b"), [("mass",)])


def test_units_stand_in_a_column_of_their_own_and_below_the_names_where_it_is_narrow() -> None:
    rows = [
        ("mass", "kg", "2.0", "measured"),
        ("h_q1", "N·m·s/rad", "0.1", "not determined by a log as short as this one is"),
    ]
    shown = page_of(Table(("number", "unit", "value", "how"), rows, left=(1, 3), strong=(2,), weak=(1,)))
    assert '<th scope="row" data-unit="kg">mass</th><td class="unit">kg</td><td class="strong">2.0</td>' in shown
    assert shown.count('<tr class="weak">') == 1 and shown.count('class="text long"') == 1
    plain = page_of(Table(("number", "unit"), [("mass", "2")]))  # a column of numbers with this name is no unit
    assert 'data-unit="' not in plain and 'class="unit"' not in plain


def page_of(table: Table) -> str:
    """The table within its page, without style and script."""
    result = Result("a study", 1, False, {}, {}, (), {})
    text = page("A title", Verdict("good", "It works."), [], [Section("Table", [table])], result, "veridyn demo x")
    return text[text.index("<main>") : text.index("</main>")]


def degenerate() -> Block:
    ConvexHull(np.zeros((5, 3)))
    raise AssertionError


def singular() -> Block:
    np.linalg.inv(np.zeros((2, 2)))
    raise AssertionError


def refused() -> Block:
    raise DataError("it has no width.")


def test_what_can_be_drawn_is_drawn() -> None:
    assert attempted("a picture", lambda: Text("drawn")) == Text("drawn")


@pytest.mark.parametrize(
    ("make", "reason"),
    [(degenerate, "QhullError: QH6"), (singular, "LinAlgError: Singular"), (refused, "DataError: it has no width.")],
)
def test_what_cannot_be_drawn_is_named_with_the_reason(make, reason: str) -> None:
    with pytest.warns(ReportWarning, match="picture “The machine”: it cannot be drawn.\nFound " + reason):
        block = attempted("The machine", make)
    assert isinstance(block, Text)
    assert block.text.startswith(f"The picture “The machine” cannot be drawn ({reason}")


def test_a_defect_is_not_taken_for_a_picture_that_fails() -> None:
    def defect() -> Block:
        raise TypeError("a bug")

    with pytest.raises(TypeError, match="a bug"):
        attempted("The machine", defect)
