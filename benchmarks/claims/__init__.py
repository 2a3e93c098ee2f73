"""Runs that rows of ``docs/papers/claims.yaml`` name, where no demonstration has their figures.

``python -m benchmarks.claims CASE --seed N --out DIR`` makes one run of one seed on one processor and writes DIR/result.json; without
``--out`` it prints the figures. ``python -m docs.claims --run`` makes those of all rows.
"""
