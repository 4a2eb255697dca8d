"""Where the real package says what it found installed."""


def is_torch_available():
    return True
