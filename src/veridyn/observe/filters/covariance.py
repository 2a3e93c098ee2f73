"""How covariances move over a sub-step of a machine, as machine code: transition, noise, and products of small matrices.

The equations are those of :class:`~veridyn.observe.machine.MachineSystem`, which stays the reference. f degrees of freedom, k unknown
forces and parameters; states are positions (f), rates (f), those k, and biases.

The noise that a step of any system adds, whose rates have the derivative A, is Van Loan's integral, by a series and doubling:

    Q(h) = ∫₀^h exp(A s) W exp(A s)ᵀ ds = Σ_k h^k/k! L_k,    L_1 = W,  L_{k+1} = A L_k + L_k Aᵀ
    Q(2h) = Q(h) + Φ(h) Q(h) Φ(h)ᵀ,    Φ(h) = exp(A h)

The step is halved until ‖A‖h is at most 2, where the series has converged to rounding after at most 40 terms, as a rule after ten. The
reference with the matrix exponential is :func:`veridyn.observe.process_noise.van_loan`.
"""

from __future__ import annotations

from veridyn.arrays import Array
from veridyn.mechanics.compiled import core, summing

EXACT, FORWARD, INTEGRATOR = 0, 1, 2  # error models
SERIES_NORM = 2.0  # largest ‖A‖h of the series
TERMS = 40
CONVERGED = 1e-17  # of a sum: a smaller term changes nothing
MOST_HALVINGS = 60


@core
def transition(kind: int, step: Array, slopes: Array, push: Array, h: float, G: Array) -> None:
    """G (states, states) of a sub-step of h seconds by the error model `kind`.

    `step` (2f + s, 2f + k): the exact derivative, last that of s states of elements, which stand last among the k; by an integrator their
    errors stay, as all errors do there; `slopes` (f, 2f + k): ∂z̈/∂(z, ż, u) at its end; `push` (f, k): what forces do over it.
    """
    size, f, moved = len(G), len(slopes), slopes.shape[1]
    for a in range(size):
        for b in range(size):
            G[a, b] = 1.0 if a == b else 0.0
    for c in range(f):
        if kind == EXACT:
            for b in range(moved):
                G[c, b], G[f + c, b] = step[c, b], step[f + c, b]
            continue
        G[c, f + c] = h  # (54)
        for b in range(moved):
            slope = 0.0
            if kind == FORWARD:
                slope = slopes[c, b]
            elif b >= 2 * f:
                slope = push[c, b - 2 * f]
            G[c, b] += 0.5 * h * h * slope
            G[f + c, b] += h * slope
    inner = 0 if kind == INTEGRATOR else len(step) - 2 * f
    for i in range(inner):
        for b in range(moved):
            G[moved - inner + i, b] = step[2 * f + i, b]


@core
def noise(density: Array, push: Array, h: float, Q: Array) -> None:
    """White accelerations and forces, and forces and biases that walk, all integrated over the sub-step.

    `density`: of the states, then of the white part of the unknown forces.
    """
    size, f, k = len(Q), push.shape[0], push.shape[1]
    for a in range(size):
        for b in range(size):
            Q[a, b] = 0.0
    for a in range(2 * f, size):
        Q[a, a] = density[a] * h
    for a in range(f):
        white = density[f + a]
        Q[a, a] = density[a] * h + white * h**3 / 3.0
        Q[f + a, f + a] = white * h
        Q[a, f + a] = Q[f + a, a] = white * h**2 / 2.0
    for a in range(f):
        for b in range(f):
            both = 0.0
            for j in range(k):
                if density[2 * f + j] != 0.0:
                    both += push[a, j] * density[2 * f + j] * push[b, j]
            white = 0.0
            for j in range(len(density) - size):
                white += push[a, j] * density[size + j] * push[b, j]
            Q[a, b] += both * (h**5 / 20.0) + white * (h**3 / 3.0)
            Q[a, f + b] += both * (h**4 / 8.0) + white * (h**2 / 2.0)
            Q[f + a, f + b] += both * (h**3 / 3.0) + white * h
        for j in range(k):
            pushed = push[a, j] * density[2 * f + j]
            Q[a, 2 * f + j] = Q[2 * f + j, a] = pushed * (h**3 / 6.0)
            Q[f + a, 2 * f + j] = Q[2 * f + j, f + a] = pushed * (h**2 / 2.0)
    for a in range(f):
        for b in range(f):
            Q[f + b, a] = Q[a, f + b]


@core
def gather(G: Array, added: Array, first: bool, F: Array, Q: Array, product: Array) -> None:
    """F ← G F and Q ← G Q Gᵀ + added; `first`: F and Q are new."""
    size = len(G)
    if first:
        for a in range(size):
            for b in range(size):
                F[a, b], Q[a, b] = G[a, b], added[a, b]
        return
    multiply(G, F, product)
    for a in range(size):
        for b in range(size):
            F[a, b] = product[a, b]
    multiply(G, Q, product)
    transpose(product)
    multiply(G, product, Q)  # the transpose of G Q Gᵀ, which is symmetric
    for a in range(size):
        for b in range(size):
            Q[a, b] += added[a, b]


@core
def spread(P: Array, F: Array, Q: Array, dt: float, product: Array, room: Array, out: Array) -> None:
    """out = F P Fᵀ + Q, symmetric; no time, no change."""
    size = len(P)
    if dt > 0.0:
        uncertain = out[0]  # until the result is written: 1 for a state with some uncertainty, 0 for one without any
        for a in range(size):
            uncertain[a] = 0.0
            for b in range(size):
                if P[a, b] != 0.0:
                    uncertain[a] = 1.0
                    break
        _multiply_some(F, P, uncertain, size, product)
        transpose(product)
        _multiply_some(F, product, uncertain, 0, room)
    for a in range(size):
        for b in range(a + 1):
            out[a, b] = room[a, b] + Q[a, b] if dt > 0.0 else P[a, b]
        for b in range(a):
            out[b, a] = out[a, b]


@core
def _multiply_some(A: Array, B: Array, some: Array, beyond: int, out: Array) -> None:
    """out = A B, where rows of B with `some` = 0 are zero, up to the diagonal and so many columns `beyond` it."""
    size = len(A)
    if size == 1:
        out[0, 0] = A[0, 0] * some[0] * B[0, 0]
    for k in range((size + 1) // 2 if size > 1 else 0):
        a = min(2 * k, size - 2)  # the last two again where their number is odd
        _two_rows(A[a], A[a + 1], B, some, min(a + 2 + beyond, size), out[a], out[a + 1])


@summing
def _two_rows(one: Array, other: Array, B: Array, some: Array, width: int, first: Array, second: Array) -> None:
    """The first `width` numbers of two rows of A B; four rows of B at a time, so that few numbers are read and written twice."""
    size = len(one)
    for b in range(width):
        first[b] = second[b] = 0.0
    for k in range(size // 4):
        j = 4 * k
        e, f, g, h = one[j] * some[j], one[j + 1] * some[j + 1], one[j + 2] * some[j + 2], one[j + 3] * some[j + 3]
        p, q, r, s = (
            other[j] * some[j],
            other[j + 1] * some[j + 1],
            other[j + 2] * some[j + 2],
            other[j + 3] * some[j + 3],
        )
        if e != 0.0 or f != 0.0 or g != 0.0 or h != 0.0 or p != 0.0 or q != 0.0 or r != 0.0 or s != 0.0:
            for b in range(width):
                w, x, y, z = B[j, b], B[j + 1, b], B[j + 2, b], B[j + 3, b]
                first[b] += e * w + f * x + g * y + h * z
                second[b] += p * w + q * x + r * y + s * z
    for j in range(size - size % 4, size):
        e, p = one[j] * some[j], other[j] * some[j]
        if e != 0.0 or p != 0.0:
            for b in range(width):
                first[b] += e * B[j, b]
                second[b] += p * B[j, b]


@core
def multiply(A: Array, B: Array, out: Array) -> None:
    """out = A B; rows of A that are zero in a column cost nothing there."""
    rows, inner, columns = A.shape[0], A.shape[1], B.shape[1]
    for i in range(rows):
        for j in range(columns):
            out[i, j] = 0.0
        for k in range(inner):
            a = A[i, k]
            if a != 0.0:
                for j in range(columns):
                    out[i, j] += a * B[k, j]


@core
def transpose(A: Array) -> None:
    """A ← Aᵀ."""
    for a in range(len(A)):
        for b in range(a):
            A[a, b], A[b, a] = A[b, a], A[a, b]


@core
def all_finite(x: Array, P: Array, y: Array, H: Array) -> bool:
    """Whether what was predicted and expected is finite."""
    total = _nothing_of(x) + _nothing_of(y)
    for a in range(len(P)):
        total += _nothing_of(P[a])
    for j in range(len(H)):
        total += _nothing_of(H[j])
    return total == 0.0


@summing
def _nothing_of(x: Array) -> float:
    """Σ 0 xᵢ: zero, or NaN where some number is not finite."""
    total = 0.0
    for i in range(len(x)):
        total += 0.0 * x[i]
    return total


@core
def step_noise(A: Array, W: Array, dt: float, Q: Array, term: Array, product: Array, Phi: Array) -> None:
    """Q (n, n) of a step of `dt` seconds; the other matrices are room to work in."""
    n = len(A)
    norm = 0.0
    for i in range(n):
        row = 0.0
        for j in range(n):
            row += abs(A[i, j])
        norm = max(norm, row)
    halvings, h = 0, dt
    while norm * h > SERIES_NORM and halvings < MOST_HALVINGS:
        h *= 0.5
        halvings += 1
    for i in range(n):
        for j in range(n):
            term[i, j] = h * W[i, j]
            Q[i, j] = term[i, j]
    for k in range(2, TERMS + 1):
        multiply(A, term, product)
        largest, sum_size = 0.0, 0.0
        for i in range(n):
            for j in range(i + 1):
                x = (product[i, j] + product[j, i]) * (h / k)  # A L + L Aᵀ: L is symmetric
                term[i, j] = term[j, i] = x
                Q[i, j] += x
                Q[j, i] = Q[i, j]
                largest, sum_size = max(largest, abs(x)), max(sum_size, abs(Q[i, j]))
        if largest <= CONVERGED * sum_size:
            break
    if halvings == 0:
        return
    _exponential(A, h, Phi, term, product)
    for _ in range(halvings):
        multiply(Phi, Q, term)
        multiply_transposed(term, Phi, product)
        for i in range(n):
            for j in range(i + 1):
                Q[i, j] += 0.5 * (product[i, j] + product[j, i])
                Q[j, i] = Q[i, j]
        multiply(Phi, Phi, product)
        copy(product, Phi)


@core
def _exponential(A: Array, h: float, Phi: Array, term: Array, product: Array) -> None:
    """exp(A h) by its series, for ‖A‖h of at most `SERIES_NORM`."""
    n = len(A)
    for i in range(n):
        for j in range(n):
            Phi[i, j] = term[i, j] = 1.0 if i == j else 0.0
    for k in range(1, TERMS + 1):
        multiply(A, term, product)
        largest = 0.0
        for i in range(n):
            for j in range(n):
                term[i, j] = product[i, j] * (h / k)
                Phi[i, j] += term[i, j]
                largest = max(largest, abs(term[i, j]))
        if largest <= CONVERGED:
            break


@core
def multiply_transposed(A: Array, B: Array, out: Array) -> None:
    """out = A Bᵀ."""
    for i in range(A.shape[0]):
        for j in range(B.shape[0]):
            s = 0.0
            for k in range(A.shape[1]):
                s += A[i, k] * B[j, k]
            out[i, j] = s


@core
def copy(A: Array, out: Array) -> None:
    """out = A."""
    for i in range(A.shape[0]):
        for j in range(A.shape[1]):
            out[i, j] = A[i, j]
