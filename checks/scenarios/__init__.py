"""The scenarios: each a function from a bench to the run it saw there.

Lengths are counted from ``bench.boundary``, called O. A docstring says what a user would be
doing when they hit it. Modules are imported by :mod:`checks.scenarios.registry`.
"""
