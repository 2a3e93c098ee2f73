"""Machines whose truth other simulators make: their model files for veridyn, and the same machines in Pinocchio and MuJoCo."""
