"""The whole pipeline: commands, environments and processes, on fixture and on real releases."""
