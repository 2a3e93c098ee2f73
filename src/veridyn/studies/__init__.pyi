"""One reproducible run: its settings, seeds and inputs, and what came of it.

Examples
--------
>>> import veridyn as vd
>>> try:
...     vd.studies.load_study("study.yaml")
... except vd.errors.FileError as error:
...     print(error.faults[0].what)
there is no such file.
"""

from veridyn.studies.config.study import load_study as load_study
from veridyn.studies.run.identify import run_identify as run_identify
