"""Observe a four-bar linkage with one encoder and a wrong model: python examples/fourbar.py"""

import numpy as np

import veridyn as vd
from veridyn.papers.fourbar import MODEL_START, SKIP, TUNED, fourbar_run, wrong_fourbar

run = fourbar_run()  # the true mechanism, and what its encoder would read
log = run.log(np.random.default_rng(0))
start, rates = MODEL_START  # the model starts 30° and 11 rad/s away from the truth

states = vd.observe(wrong_fourbar(), log, "ekf", vd.ObserveSettings(process_noise=TUNED, start=start, rates=rates))
print(states.summary())

pin = states.virtual(vd.filters.Virtual("pin", "reaction", ("rod", "2")))["pin"]
print(f"largest force in pin 2: {np.linalg.norm(pin.values[SKIP:], axis=1).max():.0f} N")
for name, motion in (("model alone", run.plain.q), ("observer", states.q)):
    print(f"rms error of x1, {name}: {np.sqrt(((motion - run.truth.q)[SKIP:, 0] ** 2).mean()):.4f} m")
