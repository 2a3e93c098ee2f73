"""veridyn identifies the parameters of multibody machines from logs, and runs the identified model as an observer.

The verbs, the main types, the methods, the results and the errors are names of this package, listed in its stub `__init__.pyi`; what is
needed less often has a place in a module: :mod:`veridyn.model`, `elements`, `spatial`, `signals`, `dynamics`, `gpu`, `estimators`,
`manoeuvres`, `filters`, `files`, `studies` and `errors`. Each name is imported when it is first used.
"""

from veridyn.lazy import attach, keep_verbs
from veridyn.version import __version__ as __version__

VERBS = ("identify", "observe", "simulate")  # functions with a folder of the same name
_find, __dir__ = attach(__name__)
_verb = keep_verbs(__name__, VERBS)


def __getattr__(name: str) -> object:
    return _verb(name) if name in VERBS else _find(name)
