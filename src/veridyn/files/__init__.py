"""Every file format: models, logs, results, and their units.

Examples
--------
>>> import veridyn as vd
>>> log = vd.Experiment.from_arrays([0.0, 0.1, 0.2], {"q.hinge": [0.0, 0.5, 1.0]}, {"q.hinge": "rad"})
>>> vd.files.save_log(log, "run.csv").name
'run.csv'
>>> vd.files.load_log("run.csv").names
('q.hinge',)
"""

from veridyn.lazy import attach

__getattr__, __dir__ = attach(__name__)
