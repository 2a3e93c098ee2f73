"""Records of arrays for compiled code: it is handed one pointer, as a function in C is handed a pointer to a structure.

A named tuple of sixty arrays is taken apart at every call of compiled code, from Python and from other compiled functions, which takes
longer than a step of a small mechanism, and minutes of the compiler. A record is therefore bound once: the addresses and shapes of its
arrays stand in one array of integers, and compiled code reads from there what it uses.

    class Room(NamedTuple):                      bound = Bound(Room(np.zeros(3), np.zeros((3, 3))))
        x: Vector                                kernel(bound.address)
        A: Matrix                                … in the kernel: room = opened(address, Room), then room.x[0], or work(room)

Annotations say what each field is: an array of `Vector`, `Matrix`, `Cube`, `Numbers`, `Places` or `Codes`, a number, or a record again.
"""

from __future__ import annotations

from functools import cache
from typing import Annotated, Any, NamedTuple, Protocol, TypeVar, cast, get_args, get_origin, get_type_hints

import numpy as np
from numba.core import cgutils, types
from numba.core.typing.templates import AttributeTemplate
from numba.extending import infer_getattr, intrinsic, lower_getattr_generic, models, register_model
from numba.np.arrayobj import populate_array
from numpy.typing import NDArray

from veridyn.errors import ModelError

Record = TypeVar("Record")


class Kind(NamedTuple):
    """What an array of a record is: its numbers and how many indices they have."""

    dtype: type[np.generic]
    ndim: int


Vector = Annotated[NDArray[np.float64], Kind(np.float64, 1)]
Matrix = Annotated[NDArray[np.float64], Kind(np.float64, 2)]
Cube = Annotated[NDArray[np.float64], Kind(np.float64, 3)]
Numbers = Annotated[NDArray[np.int64], Kind(np.int64, 1)]
Places = Annotated[
    NDArray[np.uint64], Kind(np.uint64, 1)
]  # numba reads a signed index as one that may count from the end
Codes = Annotated[NDArray[np.int8], Kind(np.int8, 1)]

ELEMENTS: dict[type[np.generic], Any] = {
    np.float64: types.float64,
    np.int64: types.int64,
    np.uint64: types.uint64,
    np.int8: types.int8,
}
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
def fields(kind: type) -> dict[str, Any]:
    """Kinds of a record's fields by name: a :class:`Kind`, a scalar type, or the class of a record."""
    found: dict[str, Any] = {}
    for name, hint in get_type_hints(kind, include_extras=True).items():
        if get_origin(hint) is Annotated:
            found[name] = next(x for x in get_args(hint) if isinstance(x, Kind))
        elif hint in SCALARS or hasattr(hint, "_fields"):
            found[name] = hint
        else:
            raise ModelError(
                f"the field '{name}' is neither an array of a known kind, a number nor a record.",
                where=kind.__name__,
                expected="Vector, Matrix, Cube, Numbers, Places, Codes, int, float, bool or a NamedTuple",
                found=f"{hint}",
            )
    return found


@cache
def _size(kind: Any) -> int:
    """How many integers a field takes."""
    if isinstance(kind, Kind):
        return 1 + kind.ndim
    return 1 if kind in SCALARS else sum(_size(k) for k in fields(kind).values())


@cache
def _place(kind: type, name: str) -> int:
    """The place of a field among the integers of its record."""
    names = list(fields(kind))
    return sum(_size(fields(kind)[n]) for n in names[: names.index(name)])


def _addresses(record: Any, where: str) -> list[int]:
    out: list[int] = []
    for name, kind in fields(type(record)).items():
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
                    "the array cannot be handed to compiled code.",
                    where=f"{where}.{name}",
                    expected=f"{kind.ndim} dimension(s) of {kind.dtype.__name__}, row by row",
                    found=f"{getattr(value, 'dtype', type(value).__name__)}, shape {np.shape(value)}",
                )
            out += [value.ctypes.data, *value.shape]
        elif kind is float:
            out.append(int(np.float64(value).view(np.int64)))
        elif kind in SCALARS:
            out.append(int(value))
        else:
            out += _addresses(value, f"{where}.{name}")
    return out


class RecordType(types.Type):
    """A record in compiled code: a pointer to its integers."""

    def __init__(self, kind: type) -> None:
        self.kind = kind
        super().__init__(name=f"record({kind.__module__}.{kind.__qualname__})")


@register_model(RecordType)
class _Pointer(models.PrimitiveModel):
    def __init__(self, manager: Any, record: RecordType) -> None:
        super().__init__(manager, record, manager.lookup(types.CPointer(types.int64)).get_value_type())


def _type_of(kind: Any) -> Any:
    """The type under which numba knows a field."""
    if isinstance(kind, Kind):
        return types.Array(ELEMENTS[kind.dtype], kind.ndim, "C")
    return SCALARS[kind] if kind in SCALARS else RecordType(kind)


@infer_getattr
class _FieldTypes(AttributeTemplate):
    key = RecordType

    def generic_resolve(self, record: RecordType, name: str) -> Any:
        kind = fields(record.kind).get(name)
        return None if kind is None else _type_of(kind)


@lower_getattr_generic(RecordType)
def _read_field(context: Any, builder: Any, record: RecordType, pointer: Any, name: str) -> Any:
    kind, place = fields(record.kind)[name], _place(record.kind, name)

    def number(k: int) -> Any:
        # The integers of a record never change, so that the compiler need not read them again after every store.
        found = builder.load(cgutils.gep_inbounds(builder, pointer, k))
        found.set_metadata("invariant.load", builder.module.add_metadata([]))
        return found

    if isinstance(kind, Kind):
        array = context.make_array(_type_of(kind))(context, builder)
        itemsize = context.get_constant(types.intp, np.dtype(kind.dtype).itemsize)
        shape = [number(place + 1 + i) for i in range(kind.ndim)]
        strides, stride = [], itemsize
        for size in reversed(shape):
            strides.insert(0, stride)
            stride = builder.mul(stride, size)
        data = builder.inttoptr(number(place), array.data.type)
        populate_array(array, data=data, shape=shape, strides=strides, itemsize=itemsize, meminfo=None)
        return array._getvalue()
    if kind is float:
        return builder.bitcast(number(place), context.get_value_type(types.float64))
    if kind is bool:
        return builder.trunc(number(place), context.get_value_type(types.boolean))
    return number(place) if kind is int else cgutils.gep_inbounds(builder, pointer, place)


@intrinsic
def _opened(typing_context: Any, address: Any, kind: Any) -> Any:
    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return context.make_array(signature.args[0])(context, builder, args[0]).data

    return RecordType(kind.instance_class)(address, kind), code


class Opener(Protocol):
    """How compiled code opens a record."""

    def __call__(self, address: NDArray[np.int64], kind: type[Record]) -> Record: ...


opened: Opener = cast(Opener, _opened)
"""In compiled code: the record that a :class:`Bound` of this kind describes."""
