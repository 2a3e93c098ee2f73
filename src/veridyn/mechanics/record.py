"""Records of arrays for compiled code, handed over as one array of addresses.

A call from Python unpacks a named tuple of sixty arrays anew, which takes longer than a step of a small mechanism. A record is therefore
bound once: the addresses and shapes of its arrays stand in one array of integers, compiled code opens it without copying anything, and
only what it uses is read.

    class Room(NamedTuple):                      bound = Bound(Room(np.zeros(3), np.zeros((3, 3))))
        x: Vector                                kernel(bound.address)
        A: Matrix                                … in the kernel: room = opened(address, Room)

Annotations say what each field is: an array of `Vector`, `Matrix`, `Cube`, `Numbers` or `Codes`, a number, or a record again.
"""

from __future__ import annotations

from functools import cache
from typing import Annotated, Any, NamedTuple, Protocol, TypeVar, cast, get_args, get_origin, get_type_hints

import numpy as np
from numba.core import cgutils, types
from numba.extending import intrinsic
from numba.np.arrayobj import populate_array
from numpy.typing import NDArray

from veridyn.errors import Fault, ModelError

Record = TypeVar("Record")


class Kind(NamedTuple):
    """What an array of a record is: its numbers and how many indices they have."""

    dtype: type[np.generic]
    ndim: int


Vector = Annotated[NDArray[np.float64], Kind(np.float64, 1)]
Matrix = Annotated[NDArray[np.float64], Kind(np.float64, 2)]
Cube = Annotated[NDArray[np.float64], Kind(np.float64, 3)]
Numbers = Annotated[NDArray[np.int64], Kind(np.int64, 1)]
Codes = Annotated[NDArray[np.int8], Kind(np.int8, 1)]

ELEMENTS: dict[type[np.generic], Any] = {np.float64: types.float64, np.int64: types.int64, np.int8: types.int8}
SCALARS: dict[type, Any] = {int: types.int64, float: types.float64, bool: types.boolean}


class Bound:
    """A record with the addresses of its arrays. Keep it for as long as compiled code uses them: it owns the arrays.

    What compiled code writes is seen in `record`. A record that is written to belongs to one caller; not for two threads at once.
    """

    __slots__ = ("address", "record")

    def __init__(self, record: Any) -> None:
        self.record = record
        self.address: NDArray[np.int64] = np.array(_addresses(record, type(record).__name__), dtype=np.int64)

    def __reduce__(self) -> tuple[type[Bound], tuple[Any]]:
        return Bound, (self.record,)  # elsewhere the arrays lie at other places


@cache
def fields(kind: type) -> tuple[tuple[str, Any], ...]:
    """Names and kinds of a record's fields: a :class:`Kind`, a scalar type, or the class of a record."""
    found = []
    for name, hint in get_type_hints(kind, include_extras=True).items():
        if get_origin(hint) is Annotated:
            found.append((name, next(x for x in get_args(hint) if isinstance(x, Kind))))
        elif hint in SCALARS or hasattr(hint, "_fields"):
            found.append((name, hint))
        else:
            raise ModelError(
                Fault(
                    f"the field '{name}' is neither an array of a known kind, a number nor a record.",
                    where=kind.__name__,
                    expected="Vector, Matrix, Cube, Numbers, Codes, int, float, bool or a NamedTuple",
                    found=f"{hint}",
                )
            )
    return tuple(found)


def _addresses(record: Any, where: str) -> list[int]:
    out: list[int] = []
    for name, kind in fields(type(record)):
        value = getattr(record, name)
        if isinstance(kind, Kind):
            fits = (
                isinstance(value, np.ndarray)
                and value.dtype == kind.dtype
                and value.ndim == kind.ndim
                and value.flags.c_contiguous
            )
            if not fits:
                raise ModelError(
                    Fault(
                        "the array cannot be handed to compiled code.",
                        where=f"{where}.{name}",
                        expected=f"{kind.ndim} dimension(s) of {kind.dtype.__name__}, row by row",
                        found=f"{getattr(value, 'dtype', type(value).__name__)}, shape {np.shape(value)}",
                    )
                )
            out += [value.ctypes.data, *value.shape]
        elif kind is float:
            out.append(int(np.float64(value).view(np.int64)))
        elif kind in SCALARS:
            out.append(int(value))
        else:
            out += _addresses(value, f"{where}.{name}")
    return out


def _type_of(kind: Any) -> Any:
    """The type under which numba knows a field."""
    if isinstance(kind, Kind):
        return types.Array(ELEMENTS[kind.dtype], kind.ndim, "C")
    if kind in SCALARS:
        return SCALARS[kind]
    return types.BaseTuple.from_types([_type_of(k) for _, k in fields(kind)], kind)


def _build(context: Any, builder: Any, kind: Any, numbers: Any, place: int) -> tuple[Any, int]:
    """The value of a field from the array of addresses, and the place of the next."""

    def number(k: int) -> Any:
        return builder.load(cgutils.gep_inbounds(builder, numbers, k))

    if isinstance(kind, Kind):
        array_type = _type_of(kind)
        array = context.make_array(array_type)(context, builder)
        itemsize = context.get_constant(types.intp, np.dtype(kind.dtype).itemsize)
        shape = [number(place + 1 + i) for i in range(kind.ndim)]
        strides, stride = [], itemsize
        for size in reversed(shape):
            strides.insert(0, stride)
            stride = builder.mul(stride, size)
        data = builder.inttoptr(number(place), array.data.type)
        populate_array(array, data=data, shape=shape, strides=strides, itemsize=itemsize, meminfo=None)
        return array._getvalue(), place + 1 + kind.ndim
    if kind is float:
        return builder.bitcast(number(place), context.get_value_type(types.float64)), place + 1
    if kind is bool:
        return builder.trunc(number(place), context.get_value_type(types.boolean)), place + 1
    if kind is int:
        return number(place), place + 1
    values = []
    for _, one in fields(kind):
        value, place = _build(context, builder, one, numbers, place)
        values.append(value)
    return context.make_tuple(builder, _type_of(kind), values), place


@intrinsic
def _opened(typing_context: Any, address: Any, kind: Any) -> Any:
    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        numbers = context.make_array(signature.args[0])(context, builder, args[0]).data
        return _build(context, builder, kind.instance_class, numbers, 0)[0]

    return _type_of(kind.instance_class)(address, kind), code


class Opener(Protocol):
    """How compiled code opens a record."""

    def __call__(self, address: NDArray[np.int64], kind: type[Record]) -> Record: ...


opened: Opener = cast(Opener, _opened)
"""In compiled code: the record that a :class:`Bound` of this kind describes."""
