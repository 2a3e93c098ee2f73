"""OpenSim models and storages: a small one written here, against transforms worked out by hand, functions in closed form, and faults."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from veridyn.errors import DataError, FileError, ModelError
from veridyn.files.osim import DEEPEST, function_of, is_identity, load_osim, load_storage, number, numbers
from veridyn.mechanics.tree.recursion.kinematics import body_pose


def axis(name: str, of: str, direction: str, function: str) -> str:
    return f'<TransformAxis name="{name}"><coordinates>{of}</coordinates><axis>{direction}</axis>{function}</TransformAxis>'


def line(a: float, b: float = 0.0) -> str:
    return f"<LinearFunction><coefficients>{a} {b}</coefficients></LinearFunction>"


ZERO = "<Constant><value>0</value></Constant>"
SPLINE = (
    "<MultiplierFunction><function><SimmSpline><x>-1 0 1 2</x><y>0.1 0 0.1 0.4</y></SimmSpline></function>"
    "<scale>2</scale></MultiplierFunction>"
)


def frame(name: str, parent: str, at: str, turned: str = "0 0 0") -> str:
    return (
        f'<PhysicalOffsetFrame name="{name}"><socket_parent>{parent}</socket_parent><translation>{at}</translation>'
        f"<orientation>{turned}</orientation></PhysicalOffsetFrame>"
    )


def joint(
    kind: str,
    name: str,
    parent: str,
    child: str,
    coordinates: str,
    transform: str = "",
    at: str = "0 0 0",
    turned: str = "0 0 0",
) -> str:
    owned = "".join(
        f'<Coordinate name="{c}"><default_value>0.25</default_value></Coordinate>' for c in coordinates.split()
    )
    moving = f"<SpatialTransform>{transform}</SpatialTransform>" if transform else ""
    return (
        f'<{kind} name="{name}"><socket_parent_frame>p</socket_parent_frame><socket_child_frame>c</socket_child_frame>'
        f"<coordinates>{owned}</coordinates><frames>{frame('p', parent, at, turned)}"
        f"{frame('c', child, '0.01 0.02 0.03', '0.1 0.2 0.3')}</frames>{moving}</{kind}>"
    )


ROOT = "".join(
    [
        axis("rotation1", "tilt", "0 0 1", line(1)),
        axis("rotation2", "list", "1 0 0", line(1)),
        axis("rotation3", "turn", "0 1 0", line(1)),
        axis("translation1", "tx", "1 0 0", line(1)),
        axis("translation2", "ty", "0 1 0", line(1)),
        axis("translation3", "tz", "0 0 1", line(1)),
    ]
)
KNEE = "".join(
    [
        axis("rotation1", "knee", "0 0 1", line(1)),
        axis("rotation2", "knee", "1 0 0", SPLINE),
        axis("rotation3", "", "0 1 0", "<Constant><value>0.2</value></Constant>"),
        axis("translation1", "knee", "1 0 0", SPLINE),
        axis("translation2", "", "0 1 0", "<Constant><value>-0.4</value></Constant>"),
        axis("translation3", "", "0 0 1", ZERO),
    ]
)


def body(name: str, mass: float) -> str:
    return (
        f'<Body name="{name}"><mass>{mass}</mass><mass_center>0.1 -0.2 0.05</mass_center>'
        "<inertia>0.3 0.4 0.5 0.01 0.02 0.03</inertia></Body>"
    )


def text(joints: str, bodies: str = body("pelvis", 10) + body("tibia", 3) + body("toes", 0.2)) -> str:
    coupler = (
        '<CoordinateCouplerConstraint name="follows"><coupled_coordinates_function>'
        f"{line(0.5, 0.1)}</coupled_coordinates_function><independent_coordinate_names>knee</independent_coordinate_names>"
        "<dependent_coordinate_name>mtp</dependent_coordinate_name></CoordinateCouplerConstraint>"
    )
    return (
        f'<OpenSimDocument><Model name="leg"><gravity>0 -9.8 0</gravity><BodySet><objects>{bodies}</objects></BodySet>'
        f"<JointSet><objects>{joints}</objects></JointSet><ConstraintSet><objects>{coupler}</objects></ConstraintSet></Model></OpenSimDocument>"
    )


WHOLE = (
    joint("PinJoint", "mtp_joint", "/bodyset/tibia", "/bodyset/toes", "mtp", at="0 -0.4 0")
    + joint(
        "CustomJoint", "knee_joint", "/bodyset/pelvis", "/bodyset/tibia", "knee", KNEE, "0 -0.1 0.08", "0.3 -0.2 0.5"
    )
    + joint("CustomJoint", "ground_pelvis", "/ground", "/bodyset/pelvis", "tilt list turn tx ty tz", ROOT)
)


@pytest.fixture
def model_file(tmp_path: Path) -> Path:
    path = tmp_path / "leg.osim"
    path.write_text(text(WHOLE))
    return path


def xyz(*angles: float) -> np.ndarray:
    return Rotation.from_euler("XYZ", angles).as_matrix()


def test_poses_are_those_worked_out_by_hand(model_file: Path) -> None:
    """X_body = X_parent · T(translations) · R₁ R₂ R₃ · X_child⁻¹, with body-fixed Euler angles X Y Z of the frames."""
    model = load_osim(model_file)
    knee, t = np.array([0.0, 0.7, 1.5]), np.arange(3.0)
    q, pose = model.drive(t, {"knee": knee, "tilt": 0.3 + 0 * t, "ty": 0.9 + 0 * t})
    spline = 2.0 * np.array([0.0, 0.1 * 0.49, 0.1 * 2.25])  # the parabola 0.1 x² through its points
    c_R, c_p = xyz(0.1, 0.2, 0.3), np.array([0.01, 0.02, 0.03])
    for k in range(3):
        P_R, P_p = xyz(0.3, -0.2, 0.5), np.array([0.0, -0.1, 0.08])
        J_R = (
            Rotation.from_rotvec([0, 0, knee[k]])
            * Rotation.from_rotvec([spline[k], 0, 0])
            * Rotation.from_rotvec([0, 0.2, 0])
        )
        J_p = np.array([spline[k], -0.4, 0.0])
        R = P_R @ J_R.as_matrix() @ c_R.T
        p = P_p + P_R @ J_p - R @ c_p
        found = body_pose(model.machine, q, "tibia")
        assert found[0][k] == pytest.approx(R, abs=1e-9) and found[1][k] == pytest.approx(p, abs=1e-9)
        toes = body_pose(model.machine, q, "toes")
        turn = R @ Rotation.from_rotvec([0, 0, 0.5 * knee[k] + 0.1]).as_matrix() @ c_R.T  # coupled to the knee
        assert toes[0][k] == pytest.approx(turn, abs=1e-9)
    assert pose.position == pytest.approx(np.tile([0.25, 0.9, 0.25], (3, 1)))  # what is not given stays at its default
    root = Rotation.from_rotvec([0, 0, 0.3]) * Rotation.from_rotvec([0.25, 0, 0]) * Rotation.from_rotvec([0, 0.25, 0])
    assert pose.rotation[0] == pytest.approx(root.as_matrix())


def test_masses_inertias_and_gravity_are_kept(model_file: Path) -> None:
    machine = load_osim(model_file).machine
    p = machine.parameters
    assert [p[f"M_{b}"] for b in ("pelvis", "tibia", "toes")] == [10.0, 3.0, 0.2]
    assert p["MY_tibia"] == pytest.approx(-0.6)
    assert p["XX_tibia"] == pytest.approx(0.3 + 3 * (0.2**2 + 0.05**2)) and p["XY_tibia"] == pytest.approx(
        0.01 + 3 * 0.1 * 0.2
    )
    assert machine.gravity == pytest.approx([0.0, -9.8, 0.0]) and machine.base == "free" and machine.root == "pelvis"


def test_unknown_coordinates_joints_and_functions_are_named(model_file: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"'kneee' is no coordinate.*\n.*'knee'"):
        load_osim(model_file).drive(np.zeros(1), {"kneee": np.zeros(1)})
    path = tmp_path / "odd.osim"
    for content, kind, said in (
        (text(WHOLE.replace("PinJoint", "BallJoint")), ModelError, "joints of kind 'BallJoint' are not read"),
        (text(WHOLE.replace("SimmSpline", "PolynomialFunction")), ModelError, "functions of kind 'PolynomialFunction'"),
        (
            text(WHOLE, body("pelvis", 10) + body("tibia", 3) + body("toes", 1) + body("ghost", 1)),
            ModelError,
            "no joint: ghost",
        ),
        ("<OpenSimDocument/>", FileError, "holds no OpenSim model"),
        ("<Open", FileError, "it is no XML"),
    ):
        path.write_text(content)
        with pytest.raises(kind, match=said):
            load_osim(path)
    with pytest.raises(FileError, match="cannot be read"):
        load_osim(tmp_path / "none.osim")


@pytest.mark.parametrize(
    ("old", "new", "place"),
    [
        ("<mass>3</mass>", "<mass>three</mass>", r"leg.osim, body 'tibia', mass: it is not a number"),
        ("<mass>3</mass>", "<mass>nan</mass>", r"body 'tibia', mass: it is not a number(.|\n)*'nan'"),
        ("<mass>3</mass>", "<mass/>", r"body 'tibia', mass: it has another number of entries"),
        ("0.3 0.4 0.5 0.01 0.02 0.03", "0.3 0.4 0.5", r"body 'pelvis', inertia(.|\n)*6 finite numbers(.|\n)*found 3"),
        ("<gravity>0 -9.8 0", "<gravity>0 -9.8", r"leg.osim, gravity: it has another number of entries"),
        ("<axis>0 0 1</axis>", "<axis>0 0 0</axis>", r"joint 'knee_joint', axis 'translation3': the axis has no direction"),
        ("<axis>0 0 1</axis>", "<axis>0 0</axis>", r"axis 'translation3', axis: it has another number of entries"),
        ('name="rotation2"', 'name="rotation4"', r"joint 'knee_joint', axis 'rotation2': the axis is missing"),
        (SPLINE, "", r"axis 'translation1': the axis has no function"),
        ("<x>-1 0 1 2</x>", "<x>-1 0 0 2</x>", r"SimmSpline: its points make no spline"),
        ("<x>-1 0 1 2</x>", "<x>-1 0</x>", r"its points make no spline(.|\n)*2 x and 4 y"),
        ("0.3 -0.2 0.5", "0.3 -0.2", r"joint 'knee_joint', frame 'p', orientation"),
        ("0.25</default_value>", "here</default_value>", r"coordinate 'mtp', default_value: it is not a number"),
        ('<Coordinate name="mtp"><default_value>0.25</default_value></Coordinate>', "", r"joint 'mtp_joint': it has another"),
        ("<dependent_coordinate_name>mtp", "<dependent_coordinate_name>", r"coupler 'follows': it does not make one"),
        ("/bodyset/toes", "/bodyset/toe", r"each joint has one body(.|\n)*Did you mean 'toes'"),
        ("<OpenSimDocument>", "<?xml version='1.0' encoding='nonsense'?><OpenSimDocument>", r"it is no XML"),
    ],
)  # fmt: skip
def test_what_is_no_number_or_is_missing_is_named(old: str, new: str, place: str, tmp_path: Path) -> None:
    content = text(WHOLE)
    assert old in content
    path = tmp_path / "leg.osim"
    path.write_text(content.replace(old, new))
    with pytest.raises((FileError, ModelError), match=place):
        load_osim(path)


def test_text_that_is_not_utf_8_is_refused(tmp_path: Path) -> None:
    model = tmp_path / "leg.osim"
    model.write_bytes(text(WHOLE).replace("leg", "l\xe9g").encode("latin-1"))
    with pytest.raises(FileError, match="it is no XML"):
        load_osim(model)


def test_functions_are_their_closed_forms() -> None:
    x = np.array([-0.5, 0.0, 0.7])
    line = ElementTree.fromstring("<LinearFunction><coefficients>2 -1</coefficients></LinearFunction>")
    assert function_of(line, "f")(x) == pytest.approx(2 * x - 1) and not is_identity(line, "f")
    spline = "<SimmSpline><x>-1 0 1 2</x><y>1 0 1 4</y></SimmSpline>"
    text = f"<MultiplierFunction><scale>3</scale><function>{spline}</function></MultiplierFunction>"
    assert function_of(ElementTree.fromstring(text), "f")(x) == pytest.approx(
        3 * x**2
    )  # the parabola through its points
    assert is_identity(ElementTree.fromstring("<LinearFunction/>"), "f")


@pytest.mark.parametrize("text", ["1 x", "1 1e51", "1 inf", "1 1_0", "1", "1 2 3", ""])
def test_numbers_are_as_many_as_expected_finite_and_of_this_world(text: str) -> None:
    with pytest.raises(FileError, match=r"body 'a', at: (.|\n)*2 finite numbers"):
        numbers(ElementTree.fromstring(f"<a><at>{text}</at></a>"), "at", "0 0", 2, "body 'a'")
    assert number(ElementTree.fromstring("<a/>"), "at", "7", "a") == 7.0


def test_functions_nested_without_end_are_refused() -> None:
    levels = DEEPEST + 2
    text = "<MultiplierFunction><function>" * levels + "</function></MultiplierFunction>" * levels
    with pytest.raises(FileError, match="a multiple of no function"):
        function_of(ElementTree.fromstring(text), "f")


def test_a_storage_is_read_by_column_and_checked(tmp_path: Path) -> None:
    path = tmp_path / "run.sto"
    path.write_text("name\nversion=1\nendheader\ntime\tknee\n0.0\t1.5\n0.1\t2.5\n")
    found = load_storage(path)
    assert found["knee"].tolist() == [1.5, 2.5] and found["time"].tolist() == [0.0, 0.1]
    path.write_text("endheader\ntime knee\n0.0 1.5\n0.1\n")
    with pytest.raises(FileError, match=r"line 4.*another number of cells"):
        load_storage(path)
    path.write_text("time knee\n0 1\n")
    with pytest.raises(FileError, match="no OpenSim storage"):
        load_storage(path)
    with pytest.raises(FileError, match="cannot be read"):
        load_storage(tmp_path / "none.sto")


def test_a_storage_that_is_not_utf_8_is_refused(tmp_path: Path) -> None:
    storage = tmp_path / "run.sto"
    storage.write_bytes("endheader\ntime knee\n0 1\n1 \xe9\n".encode("latin-1"))
    with pytest.raises(FileError, match=r"line 4\): it is not text in UTF-8(.|\n)*0xe9"):
        load_storage(storage)


def test_cells_of_a_storage_are_numbers_and_all_faults_are_listed(tmp_path: Path) -> None:
    path = tmp_path / "run.sto"
    path.write_text("endheader\ntime knee\n0.0 one\n\n0.1 nan\n0.2 2,5\n")
    with pytest.raises(FileError, match=r"2 faults:(.|\n)*line 3(.|\n)*'one'(.|\n)*line 6(.|\n)*'2,5'"):
        load_storage(path)
    path.write_text("endheader\ntime knee knee\n0.0 1 2\n")
    with pytest.raises(FileError, match="two columns are called 'knee'"):
        load_storage(path)
    path.write_text("endheader\ntime knee\n")
    with pytest.raises(FileError, match="it holds no samples"):
        load_storage(path)
