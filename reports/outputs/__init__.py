"""The files for programs, each in the form of its public standard."""
