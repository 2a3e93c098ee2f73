"""Blocks of loops from the pattern of Φ_q."""

import numpy as np

from veridyn.mechanics.tree.of_machine import tree_of
from veridyn.mechanics.tree.steps import record as k
from veridyn.mechanics.tree.steps.kernels import ties_of
from veridyn.mechanics.tree.steps.model import tree_model
from veridyn.papers.buggy.machine import buggy


def test_loops_that_share_no_dependent_coordinate_are_blocks():
    # coordinates 0 … 5; equation 0 ties 0 and 1, equation 1 ties 3 and 4, equation 2 ties 4 and 5
    slopes = [(0, 0), (0, 1), (1, 2), (1, 3), (1, 4), (2, 4), (2, 5), (0, 2)]
    ties = ties_of(slopes, z=[0, 2, 3], dependent=[1, 4, 5], base=6)
    assert ties.blocks == (((0,), (0,)), ((1, 2), (1, 2)))
    assert ties.own == (0, 1, 2, 3, 4, 5, 6, 8, 9)
    assert ties.tied[:6] == ((),) * 6
    assert ties.tied[6:] == ((7,), (7, 10, 11), (10, 11))
    assert ties.reached[6:] == ((0,), (0, 1), (1,))
    own, block, factor, equation, position, *_ = ties.lists()
    assert (block, factor, equation, position) == ([0, 1, 3], [0, 1], [0, 1, 2], [0, 1, 2])
    assert own == list(ties.own)


def test_an_open_tree_has_no_blocks():
    ties = ties_of([], z=[0, 1], dependent=[], base=0)
    assert ties.blocks == () and ties.tied == ((), ()) and ties.own == (0, 1)


def test_each_suspension_of_the_buggy_is_a_block_and_r_has_no_entry_elsewhere():
    model = tree_model(tree_of(buggy()), unknown=())
    I = model.kernels.record.I
    assert I[k.BLOCKS] == 4  # 4 equations in front, 6 behind, on each side
    starts = I[I[k.BLOCK] : I[k.BLOCK] + 5]
    assert sorted(np.diff(starts).tolist()) == [4, 4, 6, 6]
    x, v = model.start_of()
    R = model.instant(x, v, model.start_unknown, model.loads(), derivative=False).R
    for c in range(model.f):
        tied = I[I[k.TIED] + I[I[k.TIED_FROM] + c] : I[k.TIED] + I[I[k.TIED_FROM] + c + 1]].tolist()
        rows = np.flatnonzero(R[:, c]).tolist()
        assert set(rows) <= {int(model.own[c]), *tied}
