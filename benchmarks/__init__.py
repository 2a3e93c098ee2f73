"""Speed, measured: ``python -m benchmarks`` prints one table from one run, beside Pinocchio and other peers."""
