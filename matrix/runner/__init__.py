"""Running cells, on the Python of a runtime. Needs the standard library and pebble, no more.

`matrix.runner.cell` runs one cell in the process it is called in; ``python -m matrix.runner``
is a server that keeps torch imported and forks a process for each cell that it is sent.
"""
