"""Where packages come from: uv's own settings, or else pip's, as one environment for uv.

uv does not read pip's configuration, so a private mirror or a local folder of wheels that
works for ``pip install`` would be passed by. Standard library only: the noxfile runs this
module before anything is installed.
"""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

UV_INDEX_VARIABLES = (
    "UV_DEFAULT_INDEX",
    "UV_INDEX_URL",
    "UV_INDEX",
    "UV_EXTRA_INDEX_URL",
    "UV_FIND_LINKS",
    "UV_NO_INDEX",
    "UV_CONFIG_FILE",
)
"""Any of these set means that uv has index settings of its own, and pip's are not used."""


def parse_pip_config(listing: str) -> dict[str, str]:
    """Read the output of ``pip config list`` into one flat mapping.

    Lines look like ``global.index-url='https://…'``. The environment (``:env:``) outranks
    the command's own section (``install``), and that the ``global`` one, as in pip.
    """
    ranked: dict[str, dict[str, str]] = {"global": {}, "install": {}, ":env:": {}}
    for line in listing.splitlines():
        name, equals, literal = line.partition("=")
        section, _, key = name.strip().rpartition(".")
        if equals and section in ranked:
            try:
                ranked[section][key] = str(ast.literal_eval(literal.strip()))
            except (SyntaxError, ValueError):
                ranked[section][key] = literal.strip()
    return {**ranked["global"], **ranked["install"], **ranked[":env:"]}


def uv_environment(
    environ: Mapping[str, str], pip_config: Mapping[str, str], *, uv_configured: bool = False
) -> dict[str, str]:
    """Variables to add to `environ` so that uv finds what pip would find.

    Empty where uv has index settings of its own, in `environ` or (`uv_configured`) in a
    file. Two indexes are searched as pip does, for
    the best version in either (uv would stop at the first that has the name). Where
    neither tool has settings, torch's builds are left to uv's own choice for the machine.
    """
    if uv_configured or any(environ.get(name) for name in UV_INDEX_VARIABLES):
        return {}
    settings: dict[str, str] = {}
    if url := pip_config.get("index-url"):
        settings["UV_DEFAULT_INDEX"] = url
    if urls := pip_config.get("extra-index-url", "").split():
        settings["UV_INDEX"] = " ".join(urls)
        settings["UV_INDEX_STRATEGY"] = "unsafe-best-match"
    if places := pip_config.get("find-links", "").split():
        # uv separates places by commas; pip by blanks.
        settings["UV_FIND_LINKS"] = ",".join(places)
    if pip_config.get("no-index", "").lower() in ("1", "true", "yes", "on"):
        settings["UV_NO_INDEX"] = "1"
    if not settings:
        return {} if environ.get("UV_TORCH_BACKEND") else {"UV_TORCH_BACKEND": "auto"}
    if hosts := pip_config.get("trusted-host", "").split():
        settings["UV_INSECURE_HOST"] = " ".join(hosts)
    if (cert := pip_config.get("cert")) and not environ.get("SSL_CERT_FILE"):
        settings["SSL_CERT_FILE"] = cert
    return settings


def read_pip_config() -> dict[str, str]:
    """What ``pip config list`` says here; empty where there is no pip."""
    for command in ([sys.executable, "-m", "pip"], ["pip"], ["pip3"]):
        try:
            listing = subprocess.run(
                [*command, "config", "list"], capture_output=True, text=True, check=True, timeout=60
            )
        except (OSError, subprocess.SubprocessError):
            continue
        return parse_pip_config(listing.stdout)
    return {}


def uv_has_index_settings(files: Iterable[Path]) -> bool:
    """Whether one of uv's configuration files says where packages come from."""
    setting = re.compile(
        r"^\s*(\[\[index\]\]|(extra-)?index-url\s*=|index\s*=|find-links\s*=)", re.MULTILINE
    )
    return any(
        setting.search(file.read_text(encoding="utf-8", errors="replace"))
        for file in files
        if file.is_file()
    )


def uv_config_files(environ: Mapping[str, str], home: Path) -> tuple[Path, ...]:
    """Where uv looks for a user's and a machine's configuration."""
    user = Path(environ.get("XDG_CONFIG_HOME") or home / ".config") / "uv" / "uv.toml"
    roaming = Path(environ["APPDATA"]) / "uv" / "uv.toml" if environ.get("APPDATA") else user
    return (user, roaming, Path("/etc/uv/uv.toml"))


def settings_here() -> dict[str, str]:
    """The variables for this machine, this user and this environment."""
    configured = uv_has_index_settings(uv_config_files(os.environ, Path.home()))
    return uv_environment(os.environ, read_pip_config(), uv_configured=configured)


def main() -> None:
    """Print the variables as one JSON object."""
    print(json.dumps(settings_here()))


if __name__ == "__main__":
    main()
