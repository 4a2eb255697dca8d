"""The workflows, run here: a folder plays the platform."""
