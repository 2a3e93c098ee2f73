from dataclasses import replace

import numpy as np
import pytest

from studies.bench_evidence import bench_evidence
from veridyn.identify.diagnosis.gravity import best_gravity
from veridyn.model.body import Body
from veridyn.model.machine import Machine


@pytest.mark.parametrize(
    "believed", [[0.0, 0.0, -9.81], [9.81, 0.0, 0.0], [0.0, 0.0, 9.81], [0.0, 0.0, 0.0], [0.0, 3.0, -9.3]]
)
def test_the_gravity_of_the_log_is_found_whatever_the_model_says(believed: list[float]) -> None:
    e = bench_evidence()
    found = best_gravity(replace(e, machine=replace(e.machine, gravity=np.array(believed))))
    assert found is not None
    # Its direction is that of the weights; its size, which only inertia fixes, is known to some percent.
    np.testing.assert_allclose(found.gravity / np.linalg.norm(found.gravity), [0.0, 0.0, -1.0], atol=0.02)
    assert np.linalg.norm(found.gravity) == pytest.approx(9.81, rel=0.08)
    assert found.error == pytest.approx(e.error(), rel=0.2)


def test_a_free_base_measures_its_gravity() -> None:
    e = bench_evidence()
    free = Machine.of_bodies([Body("1", None, "fixed")], base="free")
    assert best_gravity(replace(e, machine=free)) is None
    assert best_gravity(replace(e, rows=())) is None
