"""Every file format: models, logs, results, and their units.

Examples
--------
>>> import numpy as np
>>> import veridyn as vd
>>> log = vd.Experiment.from_arrays([0.0, 0.1, 0.2], {"q.hinge": [0.0, 0.5, 1.0]}, {"q.hinge": "rad"})
>>> vd.files.save_log(log, "run.csv").name
'run.csv'
>>> vd.files.load_log("run.csv").names
('q.hinge',)

A machine into other formats and back:

>>> from pathlib import Path
>>> from veridyn.files import *
>>> inertia = vd.spatial.from_centre(2.0, [0.5, 0.0, 0.0], np.diag([0.01, 0.1, 0.1]))
>>> rod, hinge = vd.Link(name="rod", inertia=inertia), vd.Joint(name="hinge", a="ground", b="rod", actuated=True)
>>> pendulum = vd.Machine.build([rod], [hinge], elements=[vd.elements.damper("hinge", 0.2)])
>>> save_mjcf(pendulum, "pendulum.xml")
>>> load_mjcf("pendulum.xml").coordinates, mjcf_limits("pendulum.xml")["hinge"].upper
(('hinge',), inf)
>>> save_urdf(pendulum, "pendulum.urdf")
>>> load_urdf("pendulum.urdf").coordinates, urdf_limits("pendulum.urdf")["hinge"].effort
(('hinge',), inf)
>>> servo = vd.model.Controller(name="servo", kind="pd", on="hinge", rate=500, constants={"kp": 60.0, "kd": 4.0})
>>> save_isaac(pendulum.with_controllers([servo]), "actuators.py")
>>> "IdealPDActuatorCfg" in Path("actuators.py").read_text()
True

Positions on the Earth (extra geodesy):

>>> malaga = GeoOrigin.in_degrees(36.72, -4.42, 11.0)
>>> east = enu_of(malaga.latitude, malaga.longitude + 1e-5, malaga.height, malaga)
>>> east.round(1), np.allclose(geodetic_of(east, malaga)[1], malaga.longitude + 1e-5, atol=1e-12)
(array([51.2,  0. , -0. ]), True)
>>> fixes = {"fix.latitude": [0.6409] * 2, "fix.longitude": [-0.0771] * 2, "fix.altitude": [11.0] * 2}
>>> at = vd.Experiment.from_arrays([0.0, 1.0], fixes, {"fix.latitude": "rad", "fix.longitude": "rad", "fix.altitude": "m"})
>>> local_position(at).names
('fix.latitude', 'fix.longitude', 'fix.altitude', 'position.east', 'position.north', 'position.up')
>>> degrees_of_minutes(3643.2).round(2)  # 36° 43.2'
np.float64(36.72)
"""

from veridyn.lazy import attach

__getattr__, __dir__ = attach(__name__)
