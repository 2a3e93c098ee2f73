"""What separates columns, where a header stands, and what is refused."""

import pytest

from veridyn.errors import FileError
from veridyn.files.log.layout import find_layout


def write(tmp_path, text):
    path = tmp_path / "log.csv"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("text", "mark"), [("a,b\n1,2\n", ","), ("a;b\n1;2\n", ";"), ("a\tb\n1\t2\n", "\t"), ("# a\n1\n", ",")]
)
def test_delimiter_is_found(tmp_path, text, mark):
    layout = find_layout(write(tmp_path, text), None, None)
    assert layout.delimiter == mark
    assert layout.has_header
    assert layout.headers[0] == "a"


@pytest.mark.parametrize(
    ("text", "names", "words"),
    [
        ("", None, "rows of numbers under a header, found an empty file"),
        ("t,x\n", None, "found a header alone"),
        ("", ["t"], "Expected rows of numbers, found an empty file"),
        ("1,2,3\n", ["t", "x"], r"\(line 1\): `columns` does not fit the file.\nExpected 3 names, found 2"),
    ],
)
def test_files_without_samples_or_with_other_columns(tmp_path, text, names, words):
    with pytest.raises(FileError, match=words.replace(r"\(line 1\)", "line 1")):
        find_layout(write(tmp_path, text), names, None)


@pytest.mark.parametrize(
    ("text", "mark", "skip"),
    [
        ("Recorder 3\nserial,17\n\nt,a,b\n0,1,2\n1,2,3\n2,2,3\n3,2,3\n", ",", 3),
        ("Recorder 3;;\nby N. N.\nt;a;b\n0,0;1,5;2\n0,1;2,5;3\n0,2;2,5;3\n", ";", 2),
        ("# a log\n# t a b\n0.0 1 2\n0.1 1 2\n0.2 1 2\n", " ", 1),
        ("name\nendheader\ntime\ta\tb\n0\t1\t2\n1\t1\t2\n2\t1\t2\n", "\t", 2),
        ("\n\nt,a,b\n0,1,2\n", ",", 2),
        ("three words here\nevery 5 ms\nt  a  b\n0  1  2\n1  1  2\n", " ", 2),
        ("t,a,b\nnan,,NA\n0,1,2\n", ",", 0),
    ],
)
def test_a_header_below_a_preamble(tmp_path, text, mark, skip):
    layout = find_layout(write(tmp_path, text), None, None, "," if mark == ";" else ".")
    assert (layout.delimiter, layout.skip, layout.before) == (mark, skip, skip + 1)
    assert layout.headers[0] in ("t", "time") and layout.headers[1:] == ("a", "b")


def test_a_row_of_units_below_the_header_becomes_part_of_the_names(tmp_path):
    layout = find_layout(write(tmp_path, "t;q1;tau1;n\ns;deg;[Nm];\n0;1;2;3\n"), None, None)
    assert layout.headers == ("t [s]", "q1 [deg]", "tau1 [Nm]", "n")
    assert layout.before == 2
    below = find_layout(write(tmp_path, "a plate\nFrame,Fx,My\n,N,N*mm\n1,2,3\n2,2,3\n3,2,3\n"), None, None)
    assert below.headers == ("Frame", "Fx [N]", "My [N*mm]") and below.before == 3


def test_lines_before_the_header_may_be_counted_by_the_user(tmp_path):
    path = write(tmp_path, "a,b\nt,x\n0,1\n")
    assert find_layout(path, None, None, skip=1).headers == ("t", "x")
    assert find_layout(path, ["t", "x"], None, skip=2).before == 2
    with pytest.raises(FileError, match="nothing behind the 3 lines that are skipped"):
        find_layout(path, None, None, skip=3)


def test_numbers_without_a_header_below_a_preamble(tmp_path):
    layout = find_layout(write(tmp_path, "the recorder\n0 1 2\n1 1 2\n2 1 2\n"), ["t", "a", "b"], None)
    assert (layout.delimiter, layout.before, layout.has_header) == (" ", 1, False)
