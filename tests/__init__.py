"""Tests: fast ones on the pure parts, slow ones on fixture packages, a few on real releases."""
