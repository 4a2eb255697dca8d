"""The configuration of Phi-3."""


class Phi3Config:
    """Takes the fields of the published configurations, and keeps whatever else it is given."""

    def __init__(self, attn_implementation="eager", **fields):
        self._attn_implementation = attn_implementation
        self.__dict__.update(fields)
