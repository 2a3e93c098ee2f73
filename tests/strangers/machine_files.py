"""Model files of machines as a user would write them, each a text for parse_machine. Every number is chosen."""

from __future__ import annotations

import numpy as np

# A sliding joint, a spring on a distance and one between places.
SLIDER_CRANK = """\
veridyn: 2
name: slider-crank
gravity: [0, -9.81]
constants: {r: 0.3, L: 1.0, th: 0.7}
points:
  O: {at: [0, 0], fixed: true}
  A: {at: [r*cos(th), r*sin(th)]}
  B: {at: [1.2, 0.0]}
vectors: {u: {along: [1, 0]}}
bodies:
  crank: {bar: [O, A], length: r, mass: 1}
  rod: {bar: [A, B], length: L, mass: 2}
  piston: {points: {B: [0, 0]}, vectors: {u: [1, 0]}, mass: 3, centre: [0.05, 0.02], inertia: 0.04}
joints:
  guide: {kind: sliding, a: {body: ground, at: [0, 0], axis: [1, 0]}, b: {body: piston, at: [0, 0], axis: [1, 0]}}
coordinates: {phi: {of: [O, A], from: [1, 0]}, x: {a: O, b: B, along: [1, 0]}}
elements:
  - {kind: spring, name: gas, on: x, value: 200, rest: 1.0}
  - {kind: spring, name: strut, between: [{body: ground, at: [1.5, 0.3]}, B], value: 50, rest: 0.2}
loads: {motor: {kind: drive, on: phi, value: 2.0}}
sensors:
  enc: {kind: coordinate, on: phi, sigma: 0.01}
  acc: {kind: accelerometer, on: {body: piston, at: [0.1, 0.05]}, sigma: 0.1}
  racc: {kind: accelerometer, on: {body: rod, at: [0.4, 0.05], axis: [1, 1]}, sigma: 0.1}
  gyr: {kind: gyroscope, on: rod, sigma: 0.01}
  vel: {kind: velocity, on: {body: rod, at: [0.4, 0.05]}, sigma: 0.01, axes: y}
"""

# Turning, spherical, spherical, turning: a spatial four-bar.
RSSR = """\
veridyn: 2
name: rssr
gravity: [0, 0, -9.81]
points:
  A0: {at: [0, 0, 0], fixed: true}
  A: {at: [0, 0.32, 0.1]}
  B0: {at: [1.0, 0.2, 0], fixed: true}
  B: {at: [1.3, 0.74, -0.28]}
vectors:
  a: {along: [1, 0, 0], fixed: true}
  b: {along: [0, 0.6, 0.8], fixed: true}
  a2: {along: [0, 0, 1]}
  b2: {along: [1, 0, 0]}
bodies:
  crank: {points: {A0: [0, 0, 0], A: [0, 0.35, 0]}, vectors: {a: [1, 0, 0], a2: [0, 0, 1]},
    mass: 1.5, centre: [0.02, 0.15, 0.01], inertia: [0.02, 0, 0, 0.01, 0, 0.02]}
  rocker: {points: {B0: [0, 0, 0], B: [0.3, 0.6, 0.1]}, vectors: {b: [0, 0, 1], b2: [1, 0, 0]},
    mass: 2.0, centre: [0.1, 0.3, 0.05], inertia: [0.08, 0.01, 0, 0.05, 0, 0.09]}
joints:
  rod: {kind: distance, a: A, b: B, length: 1.5}
coordinates:
  phi: {of: [A0, A], from: [0, 1, 0], towards: [0, 0, 1]}
  psi: {of: b2, from: [1, 0, 0], towards: [0, 0.8, -0.6]}
elements:
  - {kind: spring, name: k, on: psi, value: 8, rest: 0.2}
loads: {motor: {kind: drive, on: phi, value: 1.0}}
sensors:
  enc: {kind: coordinate, on: phi, sigma: 0.01}
  gyr: {kind: gyroscope, on: rocker, sigma: 0.01}
  acc: {kind: accelerometer, on: {body: rocker, at: [0.2, 0.2, 0.3], axis: [1, 1, 0], side: [0, 0, 1]}, sigma: 0.1}
"""

# Two shafts at 30 degrees and a universal joint; two rows of the bearing follow from the others.
CARDAN = """\
# input shaft along x, output shaft at beta = 30 deg in the x-y plane, cross between, joined by markers: turning, universal, turning
veridyn: 2
name: cardan
gravity: [0, 0, 0]
constants: {c: cos(pi/6), s: sin(pi/6)}
points:
  I: {at: [-0.4, 0, 0], fixed: true}
  J: {at: [0.4*c, 0.4*s, 0]}
vectors:
  i1: {along: [1, 0, 0], fixed: true}
  i2: {along: [0, 1, 0]}
  i3: {along: [0, 0, 1]}
  o1: {along: [c, s, 0]}
  o2: {along: [-s, c, 0]}
  o3: {along: [0, 0, 1]}
bodies:
  in: {points: {I: [-0.4, 0, 0]}, vectors: {i1: [1, 0, 0], i2: [0, 1, 0], i3: [0, 0, 1]}, mass: 1, inertia: [0.02, 0, 0, 0.015, 0, 0.015]}
  out: {points: {J: [0.4, 0, 0]}, vectors: {o1: [1, 0, 0], o2: [0, 1, 0], o3: [0, 0, 1]}, mass: 2, inertia: [0.05, 0, 0, 0.04, 0, 0.04]}
joints:
  hook: {kind: universal, a: {body: in, at: [0, 0, 0], axis: [0, 1, 0]}, b: {body: out, at: [0, 0, 0], axis: [0, 0, 1]}}
  bearing: {kind: cylindrical, a: {body: ground, at: [0, 0, 0], axis: [c, s, 0]}, b: {body: out, at: [0.4, 0, 0], axis: [1, 0, 0]}}
coordinates:
  alpha: {of: i2, from: [0, 1, 0], towards: [0, 0, 1]}
  gamma: {of: o3, from: [0, 0, 1], towards: [s, -c, 0]}
loads: {motor: {kind: torque, on: in, value: [0.5, 0, 0]}}
elements:
  - {kind: damper, name: drag, on: gamma, value: 0.02}
sensors:
  enc: {kind: coordinate, on: alpha, sigma: 0.01}
  gyr: {kind: gyroscope, on: out, sigma: 0.01}
"""

# A rack on a pinion, two tie rods, two road arms.
STEERING = """\
# planar rack-and-pinion steering with two road arms on tie rods
veridyn: 2
name: steering
gravity: [0, 0]
points:
  O: {at: [0, 0], fixed: true}      # pinion
  P: {at: [0, 0.1]}
  R: {at: [0, -0.02]}               # middle of the rack
  L: {at: [-0.3, -0.02]}
  M: {at: [0.3, -0.02]}
  KL: {at: [-0.6, 0.1], fixed: true}
  KR: {at: [0.6, 0.1], fixed: true}
  TL: {at: [-0.55, -0.05]}
  TR: {at: [0.55, -0.05]}
bodies:
  pinion: {points: {O: [0, 0], P: [0, 0.1]}, mass: 0.5, inertia: 0.002}
  rack: {points: {R: [0, 0], L: [-0.3, 0], M: [0.3, 0]}, mass: 3, inertia: 0.1}
  left: {points: {KL: [0, 0], TL: [0.05, -0.15]}, mass: 8, centre: [0.01, 0.02], inertia: 0.3}
  right: {points: {KR: [0, 0], TR: [-0.05, -0.15]}, mass: 8, centre: [-0.01, 0.02], inertia: 0.3}
joints:
  guide: {kind: sliding, a: {body: ground, at: [0, -0.02], axis: [1, 0]}, b: {body: rack, at: [0, 0], axis: [1, 0]}}
  rodL: {kind: distance, a: L, b: TL, length: 0.2517}
  rodR: {kind: distance, a: M, b: TR, length: 0.2517}
coordinates:
  wheel: {of: [O, P], from: [0, 1]}
  left_angle: {of: [KL, TL], from: [0, -1]}
  right_angle: {of: [KR, TR], from: [0, -1]}
  y: {a: {body: ground, at: [0, -0.02]}, b: R, along: [1, 0]}
racks: {teeth: {distance: y, angle: wheel, radius: 0.02}}
elements:
  - {kind: spring, name: align_left, on: left_angle, value: 40, rest: 0.3217}
  - {kind: spring, name: align_right, on: right_angle, value: 40, rest: -0.3217}
  - {kind: damper, name: d, on: y, value: 10}
loads: {hand: {kind: torque, on: pinion, value: 1.5}}
sensors:
  wheel_enc: {kind: coordinate, on: wheel, sigma: 0.01}
  hub: {kind: gyroscope, on: right, sigma: 0.01}
"""

# A parallel robot in the plane.
THREE_RRR = """\
veridyn: 2
name: three-rrr
gravity: [0, -9.81]
points:
  A1: {at: [0, 0], fixed: true}
  A2: {at: [2, 0], fixed: true}
  A3: {at: [1, 1.8], fixed: true}
  B1: {at: [0.2, 0.6]}
  B2: {at: [1.5, 0.4]}
  B3: {at: [1.3, 1.2]}
  C1: {at: [0.8, 0.5]}
  C2: {at: [1.2, 0.5]}
  C3: {at: [1.0, 0.85]}
bodies:
  p1: {bar: [A1, B1], length: 0.7, mass: 1}
  p2: {bar: [A2, B2], length: 0.7, mass: 1}
  p3: {bar: [A3, B3], length: 0.7, mass: 1}
  d1: {bar: [B1, C1], length: 0.7, mass: 0.8}
  d2: {bar: [B2, C2], length: 0.7, mass: 0.8}
  d3: {bar: [B3, C3], length: 0.7, mass: 0.8}
  platform: {points: {C1: [0, 0], C2: [0.4, 0], C3: [0.2, 0.35]}, mass: 2, centre: [0.2, 0.12], inertia: 0.05}
coordinates:
  q1: {of: [A1, B1], from: [1, 0]}
  q2: {of: [A2, B2], from: [1, 0]}
  q3: {of: [A3, B3], from: [1, 0]}
elements:
  - {kind: spring, name: k1, on: q1, value: 40, rest: 1.2}
  - {kind: spring, name: k2, on: q2, value: 40, rest: 2.5}
  - {kind: spring, name: k3, on: q3, value: 40, rest: -1}
loads:
  m1: {kind: drive, on: q1}
  m2: {kind: drive, on: q2}
  m3: {kind: drive, on: q3}
sensors:
  e1: {kind: coordinate, on: q1, sigma: 0.005}
  e2: {kind: coordinate, on: q2, sigma: 0.005}
  e3: {kind: coordinate, on: q3, sigma: 0.005}
  imu: {kind: accelerometer, on: {body: platform, at: [0.2, 0.12]}, sigma: 0.1}
  gyr: {kind: gyroscope, on: platform, sigma: 0.01}
"""

# A bar on two distances.
WATT = """\
veridyn: 2
name: watt
gravity: [0, -9.81]
points:
  A: {at: [0, 0], fixed: true}
  D: {at: [3, 0.5], fixed: true}
  B: {at: [1.5, 0.2]}
  C: {at: [1.6, 0.7]}
bodies:
  coupler: {bar: [B, C], length: 0.5, mass: 2}
joints:
  ab: {kind: distance, a: A, b: B, length: 1.5}
  dc: {kind: distance, a: D, b: C, length: 1.5}
coordinates: {h: {a: A, b: {body: coupler, at: [0.25, 0]}, along: [0, 1]}}
elements:
  - {kind: spring, name: k, on: h, value: 300, rest: 0.3}
sensors:
  pos: {kind: position, on: {body: coupler, at: [0.25, 0.1]}, sigma: 0.01}
  acc: {kind: accelerometer, on: {body: coupler, at: [0.25, 0]}, sigma: 0.1}
"""

# A heavy symmetric top on massless rings, so that precession, nutation and spin are angles.
TOP = """\
# the same top on two massless rings, so that precession, nutation and spin are angles
veridyn: 2
name: gimballed top
gravity: [0, 0, -9.81]
constants: {s: sin(pi/6), c: cos(pi/6)}
points: {O: {at: [0, 0, 0], fixed: true}}
vectors:
  z: {along: [0, 0, 1], fixed: true}
  n: {along: [0, 1, 0]}
  h: {along: [1, 0, 0]}
  u: {along: [c, 0, -s]}
  v: {along: [0, 1, 0]}
  w: {along: [s, 0, c]}
  a: {along: [c, 0, -s]}
bodies:
  ring: {points: {O: [0, 0, 0]}, vectors: {z: [0, 0, 1], n: [0, 1, 0], h: [1, 0, 0]}}
  inner: {points: {O: [0, 0, 0]}, vectors: {n: [0, 1, 0], w: [0, 0, 1], a: [1, 0, 0]}}
  top: {points: {O: [0, 0, 0]}, vectors: {u: [1, 0, 0], v: [0, 1, 0], w: [0, 0, 1]},
    mass: 0.5, centre: [0, 0, 0.1], inertia: [0.0006, 0, 0, 0.0006, 0, 0.0005]}
coordinates:
  precession: {of: h, from: [1, 0, 0], towards: [0, 1, 0]}
  nutation: {of: w, from: z, towards: h}
  spin: {of: u, from: a, towards: n}
loads: {motor: {kind: drive, on: spin}}
sensors:
  gyr: {kind: gyroscope, on: top, sigma: 0.01}
  acc: {kind: accelerometer, on: {body: top, at: [0.02, 0.01, 0.1]}, sigma: 0.1}
  pre: {kind: coordinate, on: precession, sigma: 0.01}
"""

# A carriage that slides, and a body that turns and slides in it.
SLIDES = """\
veridyn: 2
name: slides
gravity: [0,-3,-9.81]

points: {A: {at: [0.2,0,0]}, B: {at: [0.2,0.3,0.4]}}
vectors: {u: {along: [1,0,0]}, v: {along: [0,1,0]}, w: {along: [0,0,1]}, a: {along: [1,0,0]}, b: {along: [0,1,0]}, c: {along: [0,0,1]}}
bodies:
  car: {points: {A: [0,0,0]}, vectors: {u: [1,0,0], v: [0,1,0], w: [0,0,1]}, mass: 2, centre: [0.1,0.1,0], inertia: [0.1,0,0,0.2,0,0.25]}
  roll: {points: {B: [0,0,0]}, vectors: {a: [1,0,0], b: [0,1,0], c: [0,0,1]}, mass: 1, centre: [0.1,0.1,0.2], inertia: [0.1,0,0,0.1,0,0.1]}
joints:
  rail: {kind: sliding, a: {body: ground, at: [0,0,0], axis: [1,0,0], side: [0,1,0]},
    b: {body: car, at: [0,0,0], axis: [1,0,0], side: [0,1,0]}}
  tube: {kind: cylindrical, a: {body: car, at: [0,0.3,0], axis: [0,0,1]}, b: {body: roll, at: [0,0,0], axis: [0,0,1]}}
coordinates:
  r: {of: a, from: u, towards: v}
  x: {a: {body: ground, at: [0,0,0]}, b: A, along: [1,0,0]}
  h: {a: {body: car, at: [0,0.3,0]}, b: B, along: w}
elements:
  - {kind: spring, name: k, on: h, value: 50, rest: 0.5}
  - {kind: spring, name: kx, on: x, value: 20}
loads: {spin: {kind: drive, on: r, value: 0.3}}
sensors: {g: {kind: gyroscope, on: roll, sigma: .1}, a: {kind: accelerometer, on: {body: roll, at: [.1,.2,.1], axis: [1,1,1]}, sigma: .1}}
"""

# Hinges by two shared points.
HINGE = """\
veridyn: 2
name: hinge
gravity: [0,0,-9.81]

points: {A: {at: [0,0,0], fixed: true}, B: {at: [0,1,0], fixed: true}, C: {at: [1,0,0]}, D: {at: [1,1,0]}, E: {at: [1.5,0.5,0.5]}}
vectors: {n: {along: [0,0,1]}, m: {along: [0,0,1]}}
bodies:
  door: {points: {A: [0,0,0], B: [0,1,0], C: [1,0,0], D: [1,1,0]}, vectors: {n: [0,0,1]},
    mass: 2, centre: [0.5,0.5,0.1], inertia: [0.2,0.01,0,0.2,0,0.3]}
  flap: {points: {C: [0,0,0], D: [0,1,0], E: [0.5,0.5,0.5]}, vectors: {m: [0,0,1]},
    mass: 1, centre: [0.2,0.5,0.1], inertia: [0.1,0.01,0,0.1,0,0.1]}
sensors: {g: {kind: gyroscope, on: flap, sigma: .1}, a: {kind: accelerometer, on: {body: flap, at: [.1,.2,.3]}, sigma: .1}}
"""

# In the plane: a point with two vectors, a point with one, three points, two points.
CHAIN = """\
veridyn: 2
name: plane
gravity: [0,-9.81]

points: {A: {at: [0,0], fixed: true}, B: {at: [1,0]}, C: {at: [1.5,0.5]}, D: {at: [2,0]}, E: {at: [2,1]}}
vectors: {u: {along: [1,0]}, v: {along: [0.6,0.8]}}
bodies:
  one: {points: {A: [0,0]}, vectors: {u: [1,0], v: [0.6,0.8]}, mass: 1, centre: [0.3,0.1], inertia: 0.05}
  two: {points: {B: [0.2,0]}, vectors: {v: [0,1]}, mass: 1, centre: [0.3,0.1], inertia: 0.05}
  three: {points: {B: [0,0], C: [0.5,0.5], D: [1,0]}, mass: 1.5, centre: [0.5,0.2], inertia: 0.1}
  four: {points: {D: [0,0], E: [0,1]}, mass: 1, inertia: 0.02}
joints: {pin: {kind: turning, a: {body: one, at: [1,0]}, b: B}}
sensors: {g: {kind: gyroscope, on: two, sigma: .1}, a: {kind: accelerometer, on: {body: three, at: [.1,.2]}, sigma: .1}}
"""

# Three points on a line, and a particle on a rope.
STRING = """\
veridyn: 2
name: string
gravity: [0,0,-9.81]

points: {A: {at: [0,0,0], fixed: true}, M: {at: [0.5,0,0]}, B: {at: [1,0,0]}, P: {at: [1,0.2,-1]}}
bodies:
  bar: {points: {A: [0,0,0], M: [0.5,0,0], B: [1,0,0]}, mass: 2, centre: [0.6,0,0], inertia: [0,0,0,0.2,0,0.2]}
  ball: {points: {P: [0,0,0]}, mass: 1}
joints: {rope: {kind: distance, a: M, b: P, length: 1.2}}
elements:
  - {kind: spring, name: k, between: [B, P], value: 30, rest: 0.5}
sensors: {p: {kind: position, on: P, sigma: .1}, v: {kind: velocity, on: B, sigma: .1}}
"""

# Two directions carry a plate: sensors may read in its plane, and about its normal.
VANE = """\
veridyn: 2
name: vane
gravity: [0, 0, -9.81]
points: {A: {at: [0, 0, 0], fixed: true}, B: {at: [1, 0, 0]}}
vectors: {v: {along: [0, 1, 0]}}
bodies:
  vane: {points: {A: [0, 0, 0], B: [1, 0, 0]}, vectors: {v: [0, 1, 0]}, mass: 2, centre: [0.5, 0.2, 0], inertia: [0.1, 0, 0, 0.2, 0, 0.3]}
sensors:
  a: {kind: accelerometer, on: {body: vane, at: [0.5, 0.1, 0]}, sigma: 0.1, axes: xy}
  g: {kind: gyroscope, on: vane, sigma: 0.1, axes: z}
"""

# Four points and nothing else: it flies.
FREE = """\
veridyn: 2
name: free body
gravity: [0, 0, -9.81]
points: {A: {at: [0, 0, 0]}, B: {at: [1, 0, 0]}, C: {at: [0, 1, 0]}, D: {at: [0, 0, 1]}}
bodies:
  b: {points: {A: [0, 0, 0], B: [1, 0, 0], C: [0, 1, 0], D: [0, 0, 1]}, mass: 2, centre: [0.2, 0.2, 0.1],
    inertia: [0.1, 0, 0, 0.2, 0, 0.25]}
sensors:
  g: {kind: gyroscope, on: b, sigma: 0.02}
  a: {kind: accelerometer, on: {body: b, at: [0.1, 0.3, 0.2]}, sigma: 0.2}
  p: {kind: position, on: A, sigma: 0.02}
  p2: {kind: position, on: B, sigma: 0.02}
"""


def stewart() -> str:
    """A platform on six legs, each a distance with a spring, a damper and a motor."""
    base, top, middle = (0, 20, 120, 140, 240, 260), (-40, 60, 80, 180, 200, 300), np.array([0.05, 0.02, 1.0])
    feet = [np.array([np.cos(a), np.sin(a), 0.0]) for a in np.deg2rad(base)]
    heads = [0.5 * np.array([np.cos(a), np.sin(a), 0.0]) for a in np.deg2rad(top)]
    lines = ["veridyn: 2", "name: stewart", "gravity: [0, 0, -9.81]", "points:"]
    lines += [f"  foot{i}: {{at: {x.tolist()}, fixed: true}}" for i, x in enumerate(feet)]
    lines += [f"  C: {{at: {middle.tolist()}}}", "vectors:"]
    lines += [f"  {name}: {{along: {x.tolist()}}}" for name, x in zip("uvw", np.eye(3), strict=True)]
    lines += ["bodies:", "  platform: {points: {C: [0, 0, 0]}, vectors: {u: [1, 0, 0], v: [0, 1, 0], w: [0, 0, 1]},"]
    lines += ["    mass: 20, centre: [0, 0, 0.05], inertia: [1, 0, 0, 1.1, 0, 2]}", "coordinates:"]
    lines += [f"  L{i}: {{a: foot{i}, b: {{body: platform, at: {x.tolist()}}}}}" for i, x in enumerate(heads)]
    lines += ["elements:"]
    rest = [np.linalg.norm(middle + h - f) + 0.01 for h, f in zip(heads, feet, strict=True)]
    lines += [f"  - {{kind: spring, name: k{i}, on: L{i}, value: 4000, rest: {x}}}" for i, x in enumerate(rest)]
    lines += [f"  - {{kind: damper, name: c{i}, on: L{i}, value: 20}}" for i in range(6)]
    lines += ["loads:", *(f"  f{i}: {{kind: drive, on: L{i}, value: {3 * i - 5}}}" for i in range(6)), "sensors:"]
    lines += [f"  s{i}: {{kind: coordinate, on: L{i}, sigma: 0.001}}" for i in range(6)]
    lines += ["  gyro: {kind: gyroscope, on: platform, sigma: 0.01}"]
    lines += ["  imu: {kind: accelerometer, on: {body: platform, at: [0.1, 0.2, 0.05]}, sigma: 0.1}"]
    return "\n".join(lines) + "\n"
