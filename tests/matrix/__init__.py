"""Which cells, and running them: the parts of `matrix/` by themselves."""
