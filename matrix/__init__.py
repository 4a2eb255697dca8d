"""WHICH cells, and running them: grid, releases, layers, runner, ledger, refinement.

This module stays empty of imports: `matrix.runner` runs on the Python of a runtime, which
has nothing of the harness installed.
"""
