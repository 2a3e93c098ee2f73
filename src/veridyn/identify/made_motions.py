"""Motions of many logs, each made from its log where it is needed: here, one after the other, or by the workers of an executor.

    files = sorted(Path("logs").glob("*.parquet"))
    fit = identify(machine, MadeMotions(files, partial(read, machine)), executor=client.get_executor())

A worker makes one motion, turns its samples into equations and hands back R factors, which are small: neither the logs nor their samples
travel, and a worker never holds more than one motion. Factors are merged in the order of the logs, so that the result is the same
whatever the number of workers and the order in which they end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, overload

from veridyn.errors import DataError, Fault, VeridynError
from veridyn.model.motion import Motion


class MadeMotions(Sequence[Motion]):
    """A sequence of motions, none of which is kept.

    Parameters
    ----------
    sources : iterable
        What each motion is made from, such as the path of a log; at least one.
    make : callable
        make(source) → Motion. For processes and clusters it must be a function of a module, or a ``functools.partial`` of one.
    """

    def __init__(self, sources: Iterable[Any], make: Callable[[Any], Motion]) -> None:
        self.sources, self.make = tuple(sources), make
        if not self.sources:
            raise DataError(
                Fault("there is nothing to make motions from.", "MadeMotions", "at least one source", "none")
            )

    def made(self, source: Any) -> Motion:
        """The motion of one source; what is wrong with it carries its name."""
        try:
            found = self.make(source)
        except VeridynError as error:
            raise type(error)(error.faults, f"{source}: {error.source}" if error.source else f"{source}") from None
        except (OSError, ValueError, KeyError) as error:
            raise DataError(Fault(f"no motion can be made of it: {error}", f"{source}")) from error
        if not isinstance(found, Motion):
            raise DataError(Fault("what was made is no motion.", f"{source}", "a Motion", type(found).__name__))
        return found

    def __len__(self) -> int:
        return len(self.sources)

    def __iter__(self) -> Iterator[Motion]:
        return map(self.made, self.sources)

    @overload
    def __getitem__(self, k: int) -> Motion: ...
    @overload
    def __getitem__(self, k: slice) -> MadeMotions: ...
    def __getitem__(self, k: int | slice) -> Motion | MadeMotions:
        return MadeMotions(self.sources[k], self.make) if isinstance(k, slice) else self.made(self.sources[k])
