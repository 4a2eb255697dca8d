"""Where the real package has its base classes; the check imports it to see whether it can."""
