"""The one recursion: equations (7) to (17) of paper 000, over scalars of any kind.

Run on NumPy arrays it is the reference; run on Python floats it is one sample; run on symbolic expressions it becomes
straight-line code. Everything else in mechanics (regressor, mass matrix, forward dynamics) is made of the functions of this file.

Paper 000: Venture, Ripert, Khalil, Gautier, Bodson, IEEE T-ITS 7(3), 2006. Signs: a wrench of a motion acts on the body, the
paper's f_e is exerted by it, so f_e = −wrench.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from veridyn.mechanics.tree.tree import Tree
from veridyn.spatial.algebra import (
    IDENTITY,
    ZERO,
    Algebra,
    Mat,
    Scalar,
    Vec,
    add,
    cross,
    dot,
    is_null,
    minus,
    mul,
    plus,
    product,
    rotate,
    rotate_back,
    scaled,
    sub,
)
from veridyn.spatial.inertia import inertia_matrix

Wrench = tuple[Vec, Vec]
NO_WRENCH: Wrench = (ZERO, ZERO)


@dataclass(frozen=True)
class State:
    """What moves: coordinates and rates, one scalar each, and the motion of what carries the tree.

    `w`, `wd`, `vd`, `v` are those of the ground of a fixed tree (0, 0, −g, 0) or of the base of a free one, in its own frame. `R` and `p`
    are its attitude and position in the ground's frame, which only tyres need.
    """

    q: Sequence[Scalar]
    qd: Sequence[Scalar]
    qdd: Sequence[Scalar]
    w: Vec = ZERO
    wd: Vec = ZERO
    vd: Vec = ZERO
    v: Vec = ZERO
    R: Mat = IDENTITY
    p: Vec = ZERO


@dataclass(frozen=True)
class Outward:
    """The outward pass, body by body: pose in the antecedent (A, P), ω, ω̇, U = ω̇~ + ω~ω~, V̇ and V, each in the body's frame."""

    A: list[Mat]
    P: list[Vec]
    w: list[Vec]
    wd: list[Vec]
    U: list[Mat]
    vd: list[Vec]
    v: list[Vec]


def pose(tree: Tree, j: int, q: Scalar, algebra: Algebra) -> tuple[Mat, Vec]:
    """iAj and iPj: the placement, then the joint's own turn about z or slide along it (1)."""
    A, P = tree.placements[j]
    if tree.sigma[j] == 0:
        c, s = algebra.cos(q), algebra.sin(q)
        turn = tuple((add(mul(c, x), mul(s, y)), add(mul(c, y), mul(-s, x)), z) for x, y, z in A)
        return (turn[0], turn[1], turn[2]), P
    if tree.sigma[j] == 1:
        return A, plus(P, (mul(q, A[0][2]), mul(q, A[1][2]), mul(q, A[2][2])))
    return A, P


def rate_matrix(w: Vec, wd: Vec) -> Mat:
    """U = ω̇~ + ω~ω~, which takes a point's place in a body to its acceleration relative to the origin (10), (11)."""
    x, y, z = w
    xx, yy, zz = mul(x, x), mul(y, y), mul(z, z)
    xy, xz, yz = mul(x, y), mul(x, z), mul(y, z)
    a, b, c = wd
    return (
        (sub(0.0, add(yy, zz)), sub(xy, c), add(xz, b)),
        (add(xy, c), sub(0.0, add(xx, zz)), sub(yz, a)),
        (sub(xz, b), add(yz, a), sub(0.0, add(xx, yy))),
    )


def outward(tree: Tree, state: State, algebra: Algebra, velocity: bool = False) -> Outward:
    """From the ground outwards: poses, angular rates and accelerations of every body. V only where `velocity` asks for it."""
    o = Outward([], [], [], [], [], [], [])
    ground_U = rate_matrix(state.w, state.wd)
    for j, i in enumerate(tree.antecedent):
        w, wd, U, vd, v = (
            (o.w[i], o.wd[i], o.U[i], o.vd[i], o.v[i]) if i >= 0 else (state.w, state.wd, ground_U, state.vd, state.v)
        )
        k, ratio = tree.coordinate[j], tree.bodies[j].ratio
        q, qd, qdd = (mul(ratio, x[k]) for x in (state.q, state.qd, state.qdd)) if k >= 0 else (0.0, 0.0, 0.0)
        A, P = pose(tree, j, q, algebra)
        if i < 0 and tree.base == "free":
            w_j, wd_j, vd_j, v_j = w, wd, vd, v
        else:
            turning, sliding = tree.sigma[j] == 0, tree.sigma[j] == 1
            rate, acceleration = (0.0, 0.0, qd), (0.0, 0.0, qdd)
            w_ji = rotate_back(A, w)  # (7)
            w_j = plus(w_ji, rate) if turning else w_ji  # (8)
            wd_j = rotate_back(A, wd)
            if turning:
                wd_j = plus(wd_j, plus(acceleration, cross(w_ji, rate)))  # (9), with the q̈ the print lost
            vd_j = rotate_back(A, plus(vd, rotate(U, P)))
            if sliding:
                vd_j = plus(vd_j, plus(acceleration, scaled(2.0, cross(w_ji, rate))))  # (10)
            v_j = ZERO
            if velocity:
                v_j = rotate_back(A, plus(v, cross(w, P)))
                v_j = plus(v_j, rate) if sliding else v_j
        o.A.append(A)
        o.P.append(P)
        o.w.append(w_j)
        o.wd.append(wd_j)
        o.U.append(rate_matrix(w_j, wd_j))
        o.vd.append(vd_j)
        o.v.append(v_j)
    return o


def frames_in_root(tree: Tree, o: Outward) -> list[tuple[Mat, Vec]]:
    """The pose (A, P) of every body in the ground's frame, or in that of a free base."""
    found: list[tuple[Mat, Vec]] = []
    for j, i in enumerate(tree.antecedent):
        if i < 0:
            found.append((IDENTITY, ZERO) if tree.base == "free" else (o.A[j], o.P[j]))
        else:
            A, P = found[i]
            found.append((product(A, o.A[j]), plus(P, rotate(A, o.P[j]))))
    return found


def body_wrench(w: Vec, wd: Vec, U: Mat, vd: Vec, X: Sequence[Scalar]) -> Wrench:
    """The force and moment that a body with parameters X needs for its motion; linear in X."""
    J, MS, M = inertia_matrix(tuple(X)), (X[6], X[7], X[8]), X[9]
    F = plus(scaled(M, vd), rotate(U, MS))  # (11)
    N = plus(plus(rotate(J, wd), cross(w, rotate(J, w))), cross(MS, vd))  # (12)
    return F, N


def to_antecedent(A: Mat, P: Vec, wrench: Wrench) -> Wrench:
    """A wrench at body j's origin, seen at its antecedent's."""
    f = rotate(A, wrench[0])  # (15)
    return f, plus(rotate(A, wrench[1]), cross(P, f))  # the sum's terms in (16)


def inward(tree: Tree, o: Outward, wrenches: Sequence[Wrench]) -> list[Wrench]:
    """From the leaves inwards: what each antecedent exerts on its body, (14) to (16)."""
    total = list(wrenches)
    for j in range(len(total) - 1, -1, -1):
        i = tree.antecedent[j]
        if i >= 0 and not (is_null(total[j][0]) and is_null(total[j][1])):
            f, m = to_antecedent(o.A[j], o.P[j], total[j])
            total[i] = (plus(total[i][0], f), plus(total[i][1], m))
    return total


def joint_force(tree: Tree, j: int, wrench: Wrench) -> Scalar:
    """The component of a wrench along joint j, times its ratio to the coordinate (17)."""
    f, m = wrench
    along = f[2] if tree.sigma[j] == 1 else m[2]
    return mul(tree.bodies[j].ratio, along)


def row_of(tree: Tree, j: int) -> int | None:
    """The row that body j's joint belongs to; None for a fixed joint."""
    k = tree.coordinate[j]
    return None if k < 0 else k + (6 if tree.base == "free" else 0)


def project(tree: Tree, total: Sequence[Wrench]) -> list[Scalar]:
    """All rows from the wrenches of the inward pass: the base's six (19), then one for each coordinate (17)."""
    rows: list[Scalar] = [0.0] * len(tree.rows)
    if tree.base == "free":
        rows[:6] = [*total[0][0], *total[0][1]]
    for j, wrench in enumerate(total):
        r = row_of(tree, j)
        if r is not None:
            rows[r] = add(rows[r], joint_force(tree, j, wrench))
    return rows


def joint_forces(tree: Tree, o: Outward, j: int, wrench: Wrench) -> list[tuple[int, Scalar]]:
    """The forces of a wrench on body j at joint j, at each joint further in, and last at a free base: (row, value) along the path.

    A coordinate that several joints of the path share is met once for each of them.
    """
    met: list[tuple[int, Scalar]] = []
    while True:
        r = row_of(tree, j)
        if r is not None:
            met.append((r, joint_force(tree, j, wrench)))
        i = tree.antecedent[j]
        if i < 0:
            break
        wrench = to_antecedent(o.A[j], o.P[j], wrench)
        j = i
    if tree.base == "free":
        met += list(enumerate((*wrench[0], *wrench[1])))
    return met


def carry(tree: Tree, o: Outward, j: int, wrench: Wrench) -> dict[int, Scalar]:
    """The rows of a wrench on body j: row → value, Gⱼᵀ of the wrench."""
    rows: dict[int, Scalar] = {}
    for r, value in joint_forces(tree, o, j, wrench):
        rows[r] = add(rows.get(r, 0.0), value)
    return rows


def jacobian_entries(tree: Tree, o: Outward, j: int) -> dict[tuple[int, int], Scalar]:
    """The Jacobian of body j in its own axes, (component, row) → value: by virtual work, what a unit wrench asks of each row."""
    entries: dict[tuple[int, int], Scalar] = {}
    for k in range(6):
        e = [float(k == i) for i in range(6)]
        unit: Wrench = ((e[0], e[1], e[2]), (e[3], e[4], e[5]))
        entries |= {(k, r): value for r, value in carry(tree, o, j, unit).items()}
    return entries


def rigid_rows(
    tree: Tree, o: Outward, X: Mapping[int, Sequence[Scalar]], acting: Mapping[int, Wrench] | None = None
) -> list[Scalar]:
    """H + Q: rows of all bodies with parameters X (body → ten scalars) under wrenches acting on them."""
    wrenches: list[Wrench] = []
    for j in range(len(tree.bodies)):
        F, N = body_wrench(o.w[j], o.wd[j], o.U[j], o.vd[j], X[j]) if j in X else NO_WRENCH
        if acting and j in acting:
            F, N = minus(F, acting[j][0]), minus(N, acting[j][1])  # (14), (16) with f_e = −wrench
        wrenches.append((F, N))
    return project(tree, inward(tree, o, wrenches))


def squared_speed(v: Vec) -> Scalar:
    """V² of a body's origin, which drag multiplies (32)."""
    return dot(v, v)
