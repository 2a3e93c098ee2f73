"""Four numbers side by side, one for each wheel, in compiled code: arithmetic, choices, and functions to full double accuracy.

A :data:`Lanes` is one register where registers hold four doubles, and two where they hold two. Arithmetic and comparisons work as on
floats, also with a float on either side; a condition is four conditions, so that :func:`where` takes the place of ``if``. Products and
sums that follow each other may be rounded once.

Functions are polynomials on a reduced argument, their coefficients those that interpolate the function at Chebyshev's points, computed
with 70 digits; what they leave out is below 2e-17 of the value. All are within three units in the last place of the exact value.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, TypeAlias, cast

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, lower_builtin, models, register_model, type_callable

from veridyn.arrays import Array
from veridyn.mechanics.compiled import core

Lanes: TypeAlias = float
"""To a type checker a number; to numba :class:`LanesType`."""
Mask: TypeAlias = bool
COUNT = 4
_REAL, _INT = ir.DoubleType(), ir.IntType(64)
_VECTOR, _INTS, _BITS = (ir.VectorType(kind, COUNT) for kind in (_REAL, _INT, ir.IntType(1)))
_FLAGS = ("contract",)


class LanesType(types.Type):
    """Four doubles."""

    def __init__(self) -> None:
        super().__init__(name="Lanes")


class MaskType(types.Type):
    """Four conditions."""

    def __init__(self) -> None:
        super().__init__(name="Mask")


lanes, mask = LanesType(), MaskType()


@register_model(LanesType)
class _LanesModel(models.PrimitiveModel):
    def __init__(self, dmm: Any, fe_type: Any) -> None:
        super().__init__(dmm, fe_type, _VECTOR)


@register_model(MaskType)
class _MaskModel(models.PrimitiveModel):
    def __init__(self, dmm: Any, fe_type: Any) -> None:
        super().__init__(dmm, fe_type, _BITS)


def _spread(builder: Any, kind: Any, value: Any) -> Any:
    """A float in all four places; what is Lanes already as it is."""
    if isinstance(kind, LanesType):
        return value
    empty = ir.Constant(_VECTOR, ir.Undefined)
    first = builder.insert_element(empty, value, ir.Constant(ir.IntType(32), 0))
    return builder.shuffle_vector(first, empty, ir.Constant(ir.VectorType(ir.IntType(32), COUNT), [0] * COUNT))


def _binary(name: Any, result: Any, code: Callable[[Any, Any, Any], Any]) -> None:
    """Let an operator work on Lanes with Lanes or a float."""

    def typing(context: Any) -> Any:
        def of(a: Any, b: Any) -> Any:
            sides = (a, b)
            known = all(isinstance(side, (LanesType, types.Float)) for side in sides)
            return result if known and any(isinstance(side, LanesType) for side in sides) else None

        return of

    def lower(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return code(builder, *(_spread(builder, kind, value) for kind, value in zip(signature.args, args, strict=True)))

    type_callable(name)(typing)
    for sides in ((LanesType, LanesType), (LanesType, types.Float), (types.Float, LanesType)):
        lower_builtin(name, *sides)(lower)


def _logical(name: Any, code: Callable[[Any, Any, Any], Any]) -> None:
    """Let an operator work on two conditions of four."""

    def typing(context: Any) -> Any:
        return lambda a, b: mask if isinstance(a, MaskType) and isinstance(b, MaskType) else None

    type_callable(name)(typing)
    lower_builtin(name, MaskType, MaskType)(lambda context, builder, signature, args: code(builder, *args))


_binary(operator.add, lanes, lambda builder, a, b: builder.fadd(a, b, flags=_FLAGS))
_binary(operator.sub, lanes, lambda builder, a, b: builder.fsub(a, b, flags=_FLAGS))
_binary(operator.mul, lanes, lambda builder, a, b: builder.fmul(a, b, flags=_FLAGS))
_binary(operator.truediv, lanes, lambda builder, a, b: builder.fdiv(a, b, flags=_FLAGS))
_binary(operator.lt, mask, lambda builder, a, b: builder.fcmp_ordered("<", a, b))
_binary(operator.le, mask, lambda builder, a, b: builder.fcmp_ordered("<=", a, b))
_binary(operator.gt, mask, lambda builder, a, b: builder.fcmp_ordered(">", a, b))
_binary(operator.ge, mask, lambda builder, a, b: builder.fcmp_ordered(">=", a, b))
_logical(operator.and_, lambda builder, a, b: builder.and_(a, b))
_logical(operator.or_, lambda builder, a, b: builder.or_(a, b))


@type_callable(operator.neg)
def _type_of_minus(context: Any) -> Any:
    return lambda a: lanes if isinstance(a, LanesType) else None


@lower_builtin(operator.neg, LanesType)
def _minus(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    return builder.fneg(args[0])


def _function(name: str, count: int) -> Any:
    """A function of LLVM's on Lanes."""

    def call(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kind = ir.FunctionType(_VECTOR, [_VECTOR] * count)
        function = cgutils.get_or_insert_function(builder.module, kind, f"{name}.v{COUNT}f64")
        return builder.call(function, [_spread(builder, k, v) for k, v in zip(signature.args, args, strict=True)])

    if count == 1:

        def one(typing_context: Any, a: Any) -> Any:
            return lanes(a), call

        return intrinsic(one)

    def two(typing_context: Any, a: Any, b: Any) -> Any:
        return lanes(a, b), call

    return intrinsic(two)


root: Callable[[Lanes], Lanes] = _function("llvm.sqrt", 1)
size: Callable[[Lanes], Lanes] = _function("llvm.fabs", 1)
nearest: Callable[[Lanes], Lanes] = _function("llvm.rint", 1)
below: Callable[[Lanes], Lanes] = _function("llvm.floor", 1)
with_sign: Callable[[Lanes, Lanes], Lanes] = _function("llvm.copysign", 2)


def _four(typing_context: Any, array: Any, at: Any) -> Any:
    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        place = builder.bitcast(builder.gep(data, [args[1]]), _VECTOR.as_pointer())
        return builder.load(place, align=8)

    return lanes(array, types.intp), code


def _put_four(typing_context: Any, array: Any, at: Any, value: Any) -> Any:
    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        place = builder.bitcast(builder.gep(data, [args[1]]), _VECTOR.as_pointer())
        builder.store(_spread(builder, signature.args[2], args[2]), place, align=8)
        return context.get_dummy_value()

    return types.void(array, types.intp, value), code


def _of_four(typing_context: Any, a: Any, b: Any, c: Any, d: Any) -> Any:
    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        found = ir.Constant(_VECTOR, ir.Undefined)
        for k, value in enumerate(args):
            found = builder.insert_element(found, value, ir.Constant(ir.IntType(32), k))
        return found

    return lanes(*(types.float64,) * COUNT), code


def _each(typing_context: Any, a: Any) -> Any:
    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        values = [builder.extract_element(args[0], ir.Constant(ir.IntType(32), k)) for k in range(COUNT)]
        return context.make_tuple(builder, signature.return_type, values)

    return types.UniTuple(types.float64, COUNT)(a), code


def _where(typing_context: Any, condition: Any, a: Any, b: Any) -> Any:
    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        sides = (_spread(builder, kind, value) for kind, value in zip(signature.args[1:], args[1:], strict=True))
        return builder.select(args[0], *sides)

    return lanes(condition, a, b), code


def _anywhere(typing_context: Any, condition: Any) -> Any:
    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        bits = builder.bitcast(args[0], ir.IntType(COUNT))
        return builder.icmp_unsigned("!=", bits, ir.Constant(bits.type, 0))

    return types.boolean(condition), code


def _transposed(typing_context: Any, a: Any, b: Any, c: Any, d: Any) -> Any:
    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        def shuffled(left: Any, right: Any, *places: int) -> Any:
            return builder.shuffle_vector(left, right, ir.Constant(ir.VectorType(ir.IntType(32), COUNT), list(places)))

        low = [shuffled(args[k], args[k + 1], 0, 4, 2, 6) for k in (0, 2)]
        high = [shuffled(args[k], args[k + 1], 1, 5, 3, 7) for k in (0, 2)]
        rows = [shuffled(*pair, *places) for places in ((0, 1, 4, 5), (2, 3, 6, 7)) for pair in (low, high)]
        return context.make_tuple(builder, signature.return_type, rows)

    return types.UniTuple(lanes, COUNT)(a, b, c, d), code


def _power_of_two(typing_context: Any, k: Any) -> Any:
    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        # 1.5·2⁵² + k has k in its last bits; k + 1023 in the place of the exponent is 2^k.
        shifted = builder.fadd(args[0], ir.Constant(_VECTOR, [6755399441055744.0] * COUNT))
        bits = builder.add(builder.bitcast(shifted, _INTS), ir.Constant(_INTS, [1023] * COUNT))
        return builder.bitcast(builder.shl(bits, ir.Constant(_INTS, [52] * COUNT)), _VECTOR)

    return lanes(k), code


four: Callable[[Array, int], Lanes] = cast(Any, intrinsic(_four))
"""The four numbers of an array from a place on."""
put_four: Callable[[Array, int, Lanes], None] = cast(Any, intrinsic(_put_four))
"""Lanes, or a float four times, to the four places of an array from one on."""
of_four: Callable[[float, float, float, float], Lanes] = cast(Any, intrinsic(_of_four))
each: Callable[[Lanes], tuple[float, float, float, float]] = cast(Any, intrinsic(_each))
where: Callable[[Mask, Lanes, Lanes], Lanes] = cast(Any, intrinsic(_where))
"""a where the condition holds, else b."""
anywhere: Callable[[Mask], bool] = cast(Any, intrinsic(_anywhere))
transposed: Callable[[Lanes, Lanes, Lanes, Lanes], tuple[Lanes, Lanes, Lanes, Lanes]] = cast(
    Any, intrinsic(_transposed)
)
"""The first numbers of four Lanes, their second, third and fourth."""
_scale: Callable[[Lanes], Lanes] = cast(Any, intrinsic(_power_of_two))


@core
def total(a: Lanes) -> float:
    """The sum of the four."""
    e = each(a)
    return (e[0] + e[1]) + (e[2] + e[3])


@core
def totals(a: Lanes, b: Lanes, c: Lanes, d: Lanes) -> tuple[float, float, float, float]:
    """The sums of four Lanes."""
    first, second, third, fourth = transposed(a, b, c, d)
    return each((first + second) + (third + fourth))


@core
def least(a: Lanes, b: Lanes) -> Lanes:
    """The smaller of two in each place; what is not a number in a stays so."""
    return where(b < a, b, a)


@core
def most(a: Lanes, b: Lanes) -> Lanes:
    """The larger of two in each place; what is not a number in a stays so."""
    return where(b > a, b, a)


@core
def sine_cosine(x: Lanes) -> tuple[Lanes, Lanes]:
    """sin x and cos x, for |x| < 1e5: what is left of x beside multiples of π/2, which three numbers hold, into two polynomials."""
    n = nearest(x * 0.6366197723675814)
    r = ((x - n * 1.5707963267341256) - n * 6.077100506303966e-11) - n * 2.0222662487959506e-21
    z = r * r
    z2 = z * z
    s = (-0.16666666666666666 + z * 0.008333333333330948) + z2 * (
        (-0.00019841269836758574 + z * 2.755731610255244e-06)
        + z2 * (-2.5051131845003624e-08 + z * 1.5918129294866608e-10)
    )
    c = (0.041666666666666664 + z * -0.0013888888888887398) + z2 * (
        (2.480158729876569e-05 + z * -2.7557317271729793e-07)
        + z2 * (2.08761462684032e-09 + z * -1.1382632425521717e-11)
    )
    sine = r + r * z * s
    cosine = (1.0 - 0.5 * z) + z2 * c
    quarter = n - 4.0 * nearest(0.25 * n)  # −2 to 2, the same turn for −2 and 2
    turned = size(quarter)
    odd = (turned > 0.5) & (turned < 1.5)
    first, second = where(odd, cosine, sine), where(odd, sine, cosine)
    behind = turned > 1.5
    return where(behind | (quarter < -0.5), -first, first), where(behind | (quarter > 0.5), -second, second)


@core
def arctangent(x: Lanes) -> Lanes:
    """atan x: within tan π/8 of 0, of 1 or of infinity, and a polynomial of what is left."""
    a = size(x)
    middle, far = a > 0.41421356237309503, a > 2.414213562373095
    over = where(far, -1.0, where(middle, a - 1.0, a))
    under = where(far, a, where(middle, a + 1.0, 1.0))
    y = over / under
    z = y * y
    z2 = z * z
    z4 = z2 * z2
    low = (-0.3333333333333333 + z * 0.1999999999999552) + z2 * (-0.14285714284666542 + z * 0.11111111015256361)
    high = (-0.09090904578123903 + z * 0.07692183190826087) + z2 * (-0.06664511447381948 + z * 0.0585814891280221)
    top = (-0.0508544973794026 + z * 0.03923165829558719) + z2 * -0.01917688711906226
    start = where(far, 1.5707963267948966, where(middle, 0.7853981633974483, 0.0))
    return with_sign(start + (y + y * z * (low + z4 * (high + z4 * top))), x)


@core
def _exponential_less_one(x: Lanes) -> tuple[Lanes, Lanes]:
    """2^k and e^r − 1 of x = k ln 2 + r, for |x| < 700."""
    k = nearest(x * 1.4426950408889634)
    r = (x - k * 0.6931471804855391) - k * 7.440617110012397e-11
    r2 = r * r
    r4 = r2 * r2
    low = (0.5000000000000001 + r * 0.16666666666666669) + r2 * (0.041666666666624164 + r * 0.008333333333330065)
    high = (0.0013888888917196719 + r * 0.00019841269863040545) + r2 * (
        2.4801521322368692e-05 + r * 2.7557268480310024e-06
    )
    top = 2.7620075879983367e-07 + r * 2.5100375832561234e-08
    return _scale(k), r + r2 * (low + r4 * (high + r4 * top))


@core
def exponential(x: Lanes) -> Lanes:
    """e^x; beyond ±700, where a double soon ends, that of ±700."""
    scale, less_one = _exponential_less_one(least(most(x, -700.0), 700.0))
    return scale + scale * less_one


@core
def hyperbolic_tangent(x: Lanes) -> Lanes:
    """tanh x = (e^2|x| − 1)/(e^2|x| + 1) with the sign of x."""
    scale, less_one = _exponential_less_one(least(2.0 * size(x), 40.0))
    grown = scale * less_one + (scale - 1.0)
    return with_sign(grown / (grown + 2.0), x)
