"""Elements of a machine: springs, dampers, friction, motor inertias, drive gains and drag, and the kinds there are.

Examples
--------
>>> import veridyn as vd
>>> from veridyn.elements import *
>>> damper("hinge", 0.2).parameter_name
'h_hinge'
>>> KINDS["spring"].turning, isinstance(KINDS["spring"], ElementKind)
('N*m/rad', True)
>>> dry = coulomb("q1"), stribeck("q1", speed=0.05), tanh_friction("q1", speed=0.01), *asymmetric("q2")
>>> [e.parameter_name for e in dry]
['fs_q1', 'fst_q1', 'ft_q1', 'fsp_q2', 'fsn_q2', 'hp_q2', 'hn_q2']
>>> stops = spring({"z1": 1, "z2": -1}), cubic("z1", rest=0.1), bump_stop("z1", gap=0.08), dead_zone("q3", gap=0.01)
>>> [e.parameter_name for e in stops]
['k_z1_z2', 'k3_z1', 'kb_z1', 'kd_q3']
>>> motor = motor_inertia("q1", 0.01), drive_gain("q1", "current"), dc_motor("q1", "volts", 1.1, 2e-3, 0.05), offset("q1")
>>> along = coulomb_along("z1", middle=0.0, half=0.5), drag("chassis.fx"), relaxation("y", length=0.4, signal="speed")
>>> slow = lugre("q1", deflection=1e-4, time=0.02), maxwell("q1", time=0.5)
>>> [sorted(e.constants) for e in slow]
[['deflection', 'ratio', 'speed', 'time'], ['time']]
>>> coil = strut("spring", Marker("ground", (0, 0, 0.5)), Marker("arm", (0.3, 0, 0)), 9e3, rest=0.25)
>>> cable = law("q2", "c**3", name="cable", unit="N*m/rad^3"), table("q2", [-1, 0, 1], [0.4, 0, 0.9])
>>> isinstance(cable[1].table, LawTable), isinstance(coil, Element)
(True, True)
"""

from veridyn.lazy import attach

__getattr__, __dir__ = attach(__name__)
