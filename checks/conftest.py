"""``pytest checks`` by itself: the core set on phi3, in whatever environment this is.

``python -m checks`` has the options; it brings the plugin itself and passes this file by.
"""

from __future__ import annotations

import pytest

from checks.plugin import MatrixPlugin


def pytest_configure(config: pytest.Config) -> None:
    """Make a test of every case, unless somebody brought the plugin already."""
    if not any(isinstance(plugin, MatrixPlugin) for plugin in config.pluginmanager.get_plugins()):
        config.pluginmanager.register(MatrixPlugin(), "longrope-matrix")
