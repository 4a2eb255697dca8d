"""Runtimes: a virtual environment with one Python, one torch and what the runner needs."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import filelock

from matrix.errors import PythonMissingError, RuntimeInstallError
from matrix.ledger import runtime_folder, write_atomically
from matrix.uv import Uv, UvError

if TYPE_CHECKING:
    from matrix.grid import Runtime

PROJECT = Path(__file__).resolve().parents[1] / "pyproject.toml"

_DESCRIBE = """
import json, platform, sys
from importlib import metadata
print(json.dumps({
    "python": platform.python_version(),
    "packages": {d.metadata["Name"].lower().replace("_", "-"): d.version
                 for d in metadata.distributions()},
}))
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """An installed environment.

    Attributes:
        folder: Where it is.
        executable: Its interpreter.
        python: Full version of that.
        packages: Normalised name -> version of everything in it.
    """

    folder: Path
    executable: Path
    python: str
    packages: dict[str, str]

    @property
    def torch(self) -> str:
        """Version of torch with its build; empty if there is none."""
        return self.packages.get("torch", "")


def runtime_requirements() -> list[str]:
    """What a runtime has beside torch: the group `runtime` of pyproject.toml."""
    groups = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["dependency-groups"]
    return list(groups["runtime"])


def prepare_runtime(runtime: Runtime, uv: Uv, folder: Path) -> Environment:
    """The environment of `runtime` under `folder`, installed now or earlier.

    Raises:
        PythonMissingError: Neither this machine nor uv has such a Python.
        RuntimeInstallError: torch or what goes with it could not be installed.
        DiskFullError: No space is left.
    """
    place = folder / runtime_folder(runtime.name)
    requirements = [f"torch=={runtime.torch}", *runtime_requirements(), *runtime.extras]
    place.parent.mkdir(parents=True, exist_ok=True)
    with filelock.FileLock(place.with_name(place.name + ".lock")):
        stamp = place / "runtime.json"
        if not _is_current(stamp, requirements):
            _create(place, runtime.python, uv)
            try:
                # Compiled once here, or else by every fresh interpreter at the same time.
                uv.run(
                    *("pip", "install", "--quiet", "--compile-bytecode"),
                    *("--python", str(interpreter(place))),
                    *requirements,
                )
            except UvError as error:
                raise RuntimeInstallError(
                    f"The runtime {runtime.name} could not be installed ({error.reason}):\n"
                    f"{error.log}",
                    advice="Check the network and the index settings of uv or pip, or choose "
                    "another pair with --runtimes.",
                ) from error
            write_atomically(stamp, json.dumps(requirements).encode())
        return describe(place)


def _is_current(stamp: Path, requirements: list[str]) -> bool:
    try:
        known = json.loads(stamp.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return bool(known == requirements)


def _create(place: Path, python: str, uv: Uv) -> None:
    try:
        # uv itself tries a download several times.
        uv.run("venv", "--quiet", "--clear", "--python", python, str(place), tries=1)
    except UvError as error:
        raise PythonMissingError(
            f"There is no Python {python} here, and uv could not fetch one:\n{error.log}",
            advice=f"Install Python {python}, or choose another runtime with --runtimes or in "
            "matrix/grid.toml.",
        ) from error


def create_environment(place: Path, python: Path, requirements: list[str], uv: Uv) -> Environment:
    """A new environment at `place` on the interpreter `python`.

    Raises:
        UvError: The requirements could not be installed.
        DiskFullError: No space is left.
    """
    uv.run("venv", "--quiet", "--clear", "--python", str(python), str(place))
    uv.run("pip", "install", "--quiet", "--python", str(interpreter(place)), *requirements)
    return describe(place)


def interpreter(environment: Path) -> Path:
    """The interpreter of a virtual environment."""
    if sys.platform == "win32":
        return environment / "Scripts" / "python.exe"
    return environment / "bin" / "python"


def describe(environment: Path) -> Environment:
    """What is in an environment, asked of its own interpreter.

    Raises:
        RuntimeInstallError: The interpreter does not work.
    """
    executable = interpreter(environment)
    try:
        answer = subprocess.run(
            [executable, "-I", "-c", _DESCRIBE], capture_output=True, text=True, check=True
        ).stdout
    except (OSError, subprocess.CalledProcessError) as error:
        raise RuntimeInstallError(
            f"The interpreter of {environment} does not work: {error}",
            advice=f"Delete {environment} and run the same command again.",
        ) from error
    facts = json.loads(answer)
    return Environment(
        folder=environment,
        executable=executable,
        python=facts["python"],
        packages=facts["packages"],
    )
