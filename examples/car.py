"""Identify a car from simulated drives: two to learn from, one to check with. Run: python examples/car.py"""

import numpy as np

from veridyn.papers.car.drive import TRAINING, campaign, drives_2006
from veridyn.papers.car.study import car_study

rng = np.random.default_rng(0)
made = campaign(
    rng, drives_2006(rng)
)  # a detailed car on rough roads, through its instruments; the first drive compiles the simulator
study = car_study(made, made.truth(TRAINING))

print(f"{'parameter':<10}{'a priori':>12}{'38 dof':>12}{'sigma':>10}{'sigma %':>9}{'20 dof':>12}{'truth':>12}")
for p in study.parameters:
    small = study.reduced.values[p.name]
    print(
        f"{p.name:<10}{p.prior:12.5g}{p.value:12.5g}{p.sigma:10.3g}{p.sigma_percent:9.2f}{small:12.5g}{p.truth:12.5g}"
    )
print(f"\n{len(study.accepted())} of 33 with sigma below 10 %, model error included")
print("on a drive it has not seen:")
print(study.check.summary())
