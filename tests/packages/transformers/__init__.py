"""A tiny stand-in for transformers: one model, greedy generation, and one fault at a time."""

from transformers._fault import FAULT, VERSION

__version__ = VERSION

if FAULT == "fails to import":
    raise ImportError("this release fails to import, on purpose")
