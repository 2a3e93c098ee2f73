"""What is reported of a URDF: one warning for each kind of oddity, with the count of places."""

from pathlib import Path

import pytest

from veridyn.errors import DataWarning
from veridyn.files.machine.urdf import load_urdf

LINK = (
    '<link name="l{k}"><inertial><mass value="{mass}"/>'
    '<inertia ixx="{ixx}" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial></link>\n'
)
JOINT = '<joint name="j{k}" type="continuous"><parent link="l{i}"/><child link="l{k}"/>{more}</joint>\n'


def chain(file: Path, links: int, more: str = "", ixx: float = 1.0, mass: float = 1.0) -> Path:
    parts = [LINK.format(k=k, ixx=ixx, mass=mass) for k in range(links)]
    parts += [JOINT.format(k=k, i=k - 1, more=more) for k in range(1, links)]
    file.write_text('<robot name="chain">\n' + "".join(parts) + "</robot>")
    return file


def texts(file: Path) -> list[str]:
    with pytest.warns(DataWarning) as warned:
        load_urdf(file)
    return [str(w.message) for w in warned]


def test_attributes_that_are_not_read_are_one_line(tmp_path: Path) -> None:
    more = '<dynamics D="1" K="7000" mu_coulomb="0" mu_viscous="16"/>'
    assert texts(chain(tmp_path / "c.urdf", 8, more)) == [
        "c.urdf, joint 'j1' (line 10) and 6 more: 'D', 'K', 'mu_coulomb', 'mu_viscous' of its <dynamics> are not read."
    ]
    one = texts(chain(tmp_path / "c.urdf", 2, '<dynamics stiffness="1"/>'))
    assert one == ["c.urdf, joint 'j1' (line 4): 'stiffness' of its <dynamics> is not read."]


def test_notes_that_differ_in_numbers_alone_are_of_one_kind(tmp_path: Path) -> None:
    said = texts(chain(tmp_path / "c.urdf", 4, '<origin xyz="0 0 1"/>\n<origin xyz="0 0 2"/>'))
    assert said == [
        "c.urdf, joint 'j1' (line 7) and 2 more: <origin> stands 2 times; the first counts, on line 6.",
    ]


def test_inertias_that_no_body_has_are_counted_and_not_weighed(tmp_path: Path) -> None:
    """Six of six, four by name; that their numbers are no SI units either is not worth a second line."""
    said = texts(chain(tmp_path / "c.urdf", 6, ixx=9.0, mass=1e-9))
    assert said == [
        "c.urdf, 6 of 6 links have inertias that no physical body has (l0, l1, l2, l3, …); "
        "they are taken as unknown, to be identified."
    ]
    assert "SI units" in texts(chain(tmp_path / "c.urdf", 6, ixx=1.0, mass=1e-9))[0]
