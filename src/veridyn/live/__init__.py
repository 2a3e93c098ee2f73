"""An observer or an identification that runs, on a page: samples in, estimates with bands out, while the machine moves."""
