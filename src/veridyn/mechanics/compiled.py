"""Machine code by numba: functions keep their types and their code is kept for the next process, and they are handed records of arrays.

Code is kept in veridyn's own store of objects, see :mod:`veridyn.mechanics.kept_code`.

Functions that only compiled code calls are not compiled for themselves. numba optimises every function together with all it calls, and
makes machine code of it, before it is linked into its callers: what lies deep in a tree of calls is worked on once for each level above it.
What no Python program calls needs neither, since it is optimised again in its callers. What is needed of numba for this is not public
either: with another version than those it was tried with, functions are compiled as numba does it, which takes longer.

No public option does the same. ``inline="always"`` and ``forceinline=True`` write a function out at every call, so that code grows with the
number of ways through a tree of calls: 31 functions in six levels, each calling three, take more than 100 s; as numba does it 7.6 s, and
linked 3.8 s, with the same speed of what is made.

Compiled code is handed a record as one pointer, as a function in C is handed a pointer to a structure. A named tuple of sixty arrays is
taken apart at every call of compiled code, from Python and from other compiled functions, which takes longer than a step of a small
mechanism, and minutes of the compiler. A record is therefore bound once: the addresses and shapes of its arrays stand in one array of
integers, and compiled code reads from there what it uses.

    class Room(NamedTuple):                      bound = Bound(Room(np.zeros(3), np.zeros((3, 3))))
        x: Vector                                kernel(bound.address)
        A: Matrix                                … in the kernel: room = opened(address, Room), then room.x[0], or work(room)

Annotations say what each field is: an array of `Vector`, `Matrix`, `Cube`, `Numbers`, `Places` or `Codes`, a number, or a record again.
"""

from __future__ import annotations

import importlib
import threading
from collections.abc import Callable
from functools import cache
from typing import Annotated, Any, Literal, NamedTuple, Protocol, TypeVar, cast, get_args, get_origin, get_type_hints

import numba
import numpy as np
from numba.core import cgutils, compiler, types
from numba.core.typing.templates import AttributeTemplate
from numba.extending import infer_getattr, intrinsic, lower_getattr_generic, models, register_model
from numba.np.arrayobj import populate_array
from numpy.typing import NDArray

from veridyn.errors import ModelError
from veridyn.mechanics.kept_code import keep_code

TRIED = ("0.68",)  # versions of numba


def linked_options() -> dict[str, Any]:
    """The options with which numba makes no machine code of a function but in its callers; none where that was not tried."""
    return {"pipeline_class": _pipeline()} if numba.__version__.rpartition(".")[0] in TRIED else {}


def _only_link(library: Any) -> None:
    """Let a library be linked into others, and neither optimised nor made machine code of."""

    def finish() -> None:
        library._finalize_dynamic_globals()
        library._verify_declare_only_symbols()
        library._finalized = True

    library._optimize_final_module = lambda: None
    library._finalize_final_module = finish


@cache
def _pipeline() -> type[Any]:
    """numba's compiler with a last pass of its own: LLVM's code of a function for its callers, and something that cannot be called."""
    from numba.core import compiler_machinery, typed_passes

    @compiler_machinery.register_pass(mutates_CFG=True, analysis_only=False)
    class LinkedLowering(typed_passes.NativeLowering):
        """In place of numba's own lowering."""

        _name = "linked_lowering"

        def run_pass(self, state: Any) -> Literal[True]:
            state.library = state.targetctx.codegen().create_library(state.func_id.func_qualname)
            state.library.enable_object_caching()
            _only_link(state.library)
            state.flags.no_compile = True
            super().run_pass(state)
            made, make = state["cr"], importlib.import_module("numba._dynfunc").make_function
            name = made.fndesc.qualname.split(".")[-1]
            stand_in = make(made.fndesc.lookup_module(), name, "in its callers only", 0, made.env, (state.library,))
            state.targetctx.insert_user_function(stand_in, made.fndesc, [state.library])
            state.reload_init.extend(state.library._reload_init)
            state["cr"] = made._replace(cfunc=stand_in)
            return True

    class Linked(compiler.CompilerBase):
        """numba's compiler with that pass."""

        def define_pipelines(self) -> list[Any]:
            made: Any = compiler.DefaultPassBuilder.define_nopython_pipeline(self.state)
            own = typed_passes.NativeLowering
            made.passes = [(LinkedLowering if one is own else one, why) for one, why in made.passes]
            made.finalize()
            return [made]

    return Linked


_ONE_SIGNATURE = threading.Lock()
Function = TypeVar("Function", bound=Callable[..., Any])


def compiled(function: Function) -> Function:
    """`function` as machine code, made at the first call; divisions by zero give inf or nan, as in NumPy."""
    return cast(Function, numba.njit(error_model="numpy", nogil=True)(function))


def inner(function: Function) -> Function:
    """:func:`compiled`, for functions that only compiled code calls: without doors for Python, a fifth of the compiler's time."""
    options: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True, **linked_options()}
    return cast(Function, numba.njit(error_model="numpy", nogil=True, **options)(function))


def lean(function: Function) -> Function:
    """:func:`compiled`, for functions that make no arrays and call none that do: no references are counted.

    Counting them costs more than the work itself where a small function is handed many tables.
    """
    options: dict[str, Any] = {"_nrt": False}
    return cast(Function, numba.njit(error_model="numpy", nogil=True, **options)(function))


def core(function: Function) -> Function:
    """:func:`lean` and :func:`inner` in one, for functions that only compiled code calls and that are handed whole records.

    Beware of a literal True or False as an argument: numba compiles the function once more for each.
    """
    options: dict[str, Any] = {"_nrt": False, "no_cpython_wrapper": True, "no_cfunc_wrapper": True, **linked_options()}
    return cast(Function, numba.njit(error_model="numpy", nogil=True, **options)(function))


def summing(function: Function) -> Function:
    """:func:`core`, for sums whose order does not matter: several numbers at a time, so that none waits for the one before it."""
    options: dict[str, Any] = {"_nrt": False, "no_cpython_wrapper": True, "no_cfunc_wrapper": True, **linked_options()}
    return cast(
        Function, numba.njit(error_model="numpy", nogil=True, fastmath={"reassoc", "contract"}, **options)(function)
    )


def merged(function: Function) -> Function:
    """:func:`core`, written out in the machine code of its one caller: for functions of very many numbers, which go through memory else."""
    options: dict[str, Any] = {"_nrt": False, "no_cpython_wrapper": True, "no_cfunc_wrapper": True, **linked_options()}
    return cast(Function, numba.njit(error_model="numpy", nogil=True, forceinline=True, **options)(function))


def inlined(function: Function) -> Function:
    """`function` written out wherever compiled code calls it: the only way in which a :func:`core` function has a view from another."""
    return cast(Function, numba.njit(inline="always")(function))


def address_of(function: Callable[..., Any], signature: tuple[Any, ...]) -> int:
    """The address at which compiled code can call a :func:`kept` function of numbers as a function of C; compiled or loaded now.

    Code that calls it so does not contain it, and need not be compiled again with it.
    """
    dispatcher = cast(Any, function)
    dispatcher.compile(signature)
    made = dispatcher.overloads[signature]
    return int(made.library.get_pointer_to_function(made.fndesc.llvm_cfunc_wrapper_name))


def only_for(function: Function, signature: tuple[Any, ...]) -> Function:
    """A :func:`kept` function for these types and for no others, compiled or loaded now; threads may ask for it at the same time."""
    dispatcher = cast(Any, function)
    with _ONE_SIGNATURE:
        if not dispatcher.signatures:
            dispatcher.compile(signature)
            dispatcher.disable_compile()
    return function


def kept(function: Function) -> Function:
    """:func:`compiled`, with the machine code kept on disk for the next process; for functions that are called from Python.

    The code is found again only while the function and all that it calls are the same; see
    :class:`veridyn.mechanics.kept_code.KeptCode`.
    """
    made = compiled(function)
    keep_code(made, function, fields)
    return made


Record = TypeVar("Record")


class Kind(NamedTuple):
    """What an array of a record is: its numbers and how many indices they have."""

    dtype: type[np.generic]
    ndim: int


Vector = Annotated[NDArray[np.float64], Kind(np.float64, 1)]
Matrix = Annotated[NDArray[np.float64], Kind(np.float64, 2)]
Cube = Annotated[NDArray[np.float64], Kind(np.float64, 3)]
Numbers = Annotated[NDArray[np.int64], Kind(np.int64, 1)]
# numba reads a signed index as one that may count from the end
Places = Annotated[NDArray[np.uint64], Kind(np.uint64, 1)]
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
