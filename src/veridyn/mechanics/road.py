"""Roads.  SIGNATURES; bodies follow.

Classes (frozen): Flat(), Plane(grade, bank), Bump(at, length, height, left=inf, right=-inf), Step(at, height, ramp), Profile(...), roads add: a + b
  road.packed -> float array for compiled code; road.height(x, y=0); road.slope(x, y=0) -> (dz/dx, dz/dy)   (arrays)
rough_road("C", rng, *, length=..., track=1.5, ...) -> Profile     (ISO 8608)
compiled: road_at(r, x, y) -> (z, dz/dx, dz/dy)    with r = road.packed
"""
