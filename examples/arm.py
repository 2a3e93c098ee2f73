"""The study of ``veridyn demo arm`` through the public names: two simulated logs in, parameters and their errors out."""

import numpy as np

import veridyn as vd
from veridyn.machines.arm import demonstration

demo = demonstration(np.random.default_rng(0))  # an arm that is true, one that is believed, two logs

print(vd.base_parameters(demo.model).summary())  # what any motion can tell apart

learned = vd.motion(demo.model, demo.training, demo.signals)  # resample, filter, differentiate
how = vd.IdentifySettings(sampling=demo.sampling)  # how samples become equations
fit = vd.identify(demo.model, learned, "wls", how, rows=demo.rows)
print(fit.summary())

other = vd.motion(demo.model, demo.validation, demo.signals)  # motion the fit has not seen
print(vd.validate(fit, other, how).summary())

error = np.abs(fit.values - fit.base.reduce(demo.truth.parameters.values))
print(f"{np.mean(error <= 2 * fit.sigma):.0%} of the parameters lie within two deviations of the truth")
