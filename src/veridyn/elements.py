"""Elements of a machine: springs, dampers, friction, motor inertias, drive gains and drag, and the kinds there are.

Examples
--------
>>> import veridyn as vd
>>> vd.elements.damper("hinge", 0.2).parameter_name
'h_hinge'
>>> vd.elements.KINDS["spring"].turning
'N*m/rad'
"""

from veridyn.lazy import attach

__getattr__, __dir__ = attach(__name__)
