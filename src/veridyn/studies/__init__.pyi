"""One reproducible run: its settings, seeds and inputs, and what came of it."""

from veridyn.studies.config.study import load_study as load_study
from veridyn.studies.run.identify import run_identify as run_identify
