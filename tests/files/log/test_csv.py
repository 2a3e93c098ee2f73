"""The two readers agree, and the slow one says where a file is wrong."""

import tracemalloc

import numpy as np

from veridyn.errors import Faults
from veridyn.files.log import csv as csv_table
from veridyn.files.log.csv import read_columns
from veridyn.files.log.layout import CsvLayout, find_layout


def write(tmp_path, text):
    path = tmp_path / "log.csv"
    path.write_text(text, encoding="utf-8")
    return path


def test_both_readers_agree_on_what_numbers_look_like(tmp_path):
    path = write(tmp_path, "\ufefft,x,note\n0,1.5,ab\n1e-1,-2E3,\n 0.2 ,nan,c\n0.3,,d\n\n0.4,inf,e\n")
    layout = find_layout(path, None, None)
    faults = Faults()
    fast = csv_table._fast(path, layout, ["t", "x"])
    slow = csv_table._cell_by_cell(path, layout, ["t", "x"], faults)
    assert not faults
    for header in ("t", "x"):
        assert np.array_equal(fast[header], slow[header], equal_nan=True)
    assert np.array_equal(fast["x"], [1.5, -2000.0, np.nan, np.nan, np.inf], equal_nan=True)


def test_what_only_the_slow_reader_knows_is_still_read(tmp_path):
    path = write(tmp_path, "t,x\n0,+1.5\n1,Infinity\n")
    assert read_columns(path, find_layout(path, None, None), ["x"], Faults())["x"].tolist() == [1.5, np.inf]


def test_decimal_comma(tmp_path):
    path = write(tmp_path, "t;x\n0,5;1,25\n")
    assert read_columns(path, find_layout(path, None, None, ","), ["t", "x"], Faults())["x"].tolist() == [1.25]


def test_every_fault_with_its_line(tmp_path):
    path = write(tmp_path, "t,x\n0,1\n1,one\n2\n3,4,5\n4,1_000\n5,6\n6")
    faults = Faults()
    read_columns(path, CsvLayout(",", ".", ("t", "x"), True), ["t", "x"], faults)
    assert [(f.line, f.found) for f in faults.found] == [(3, "'one'"), (4, "1"), (5, "3"), (6, "'1_000'"), (8, "1")]
    assert "delete it" in str(faults.found[-1])


def test_a_file_of_another_kind_does_not_list_every_line(tmp_path):
    path = write(tmp_path, "t,x\n" + "a,b\n" * 100)
    faults = Faults()
    read_columns(path, find_layout(path, None, None), ["t", "x"], faults)
    assert len(faults.found) == 21
    assert "200 cells that are no numbers in all" in str(faults.found[-1])


def test_columns_separated_by_blanks_are_read_by_both_readers(tmp_path):
    path = write(tmp_path, "\ufeffby the recorder\n  t     x\n  0.00  1.5\n  0.01 -2.5e1\n\n  0.02  nan \n")
    layout, faults = find_layout(path, None, None), Faults()
    assert (layout.delimiter, layout.skip, layout.headers) == (" ", 1, ("t", "x"))
    fast = csv_table._fast(path, layout, ["x"])
    slow = csv_table._cell_by_cell(path, layout, ["x"], faults)
    assert not faults
    np.testing.assert_array_equal(fast["x"], [1.5, -25.0, np.nan])
    np.testing.assert_array_equal(slow["x"], fast["x"])


def test_lines_are_counted_from_the_beginning_of_the_file(tmp_path):
    for text in ("a\nb\nt,x\n0,1\n1,one\n2,3\n", "a\nb\nt x\n0 1\n1 one\n2 3\n"):
        path, faults = write(tmp_path, text), Faults()
        read_columns(path, find_layout(path, None, None), ["t", "x"], faults)
        assert [(f.line, f.found) for f in faults.found] == [(5, "'one'")]


def test_no_number_of_a_large_table_is_held_twice(tmp_path):
    """Blocks of text become numbers in the arrays that are returned: what arrow holds meanwhile is a small part of them."""
    rows, width = 100_000, 7
    lines = [",".join(f"{(7 * k + j) % 1000 / 8}" for j in range(width)) for k in range(rows)]
    path = write(tmp_path, ",".join(f"c{j}" for j in range(width)) + "\n" + "\n".join(lines) + "\n")
    layout, wanted = find_layout(path, None, None), [f"c{j}" for j in range(width)]
    tracemalloc.start()
    found = csv_table._fast(path, layout, wanted)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    bytes_of_columns = 8 * rows * width
    assert bytes_of_columns <= peak < 1.2 * bytes_of_columns
    assert found["c3"][10] == (7 * 10 + 3) / 8
