"""The laws of motion: kinematics, inverse and forward dynamics, regressors, forces and energies."""
