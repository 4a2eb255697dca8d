"""Layers: what is asked of uv, and what is made of its refusals."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from matrix.layers import Installed, Layers, NotInstalled
from matrix.records import Reason
from matrix.runtimes import Environment
from matrix.uv import Uv
from tests.matrix.factory import release

NO_VERSION = "No solution found: there is no version of {} and you require it"


def layers(tmp_path: Path, script: str) -> Layers:
    """Layers over a program in place of uv, which gets its words as `words`."""
    program = tmp_path / "uv"
    lines = (f"#!{sys.executable}", "import pathlib, sys", "words = sys.argv[1:]")
    log = f"print(words, file=open({str(tmp_path / 'asked')!r}, 'a'))"
    program.write_text("\n".join([*lines, log, script]), encoding="utf-8")
    program.chmod(0o755)
    runtime = Environment(
        folder=tmp_path, executable=Path(sys.executable), python="3.11.7", packages={"torch": "2.0"}
    )
    uv = Uv(executable=str(program), environ={}, sleep=lambda _: None)
    folder = tmp_path / "layers"
    return Layers(package="Demo", runtime=runtime, extras=(), uv=uv, folder=folder)


def asked(tmp_path: Path) -> list[str]:
    """What was asked of uv, a line each."""
    return (tmp_path / "asked").read_text(encoding="utf-8").splitlines()


RESOLVES = "print('demo==1.0\\ntorch==2.0\\ntqdm==4.0') if 'compile' in words else None"


def test_what_the_runtime_has_is_not_installed_again(tmp_path: Path) -> None:
    """The layer holds the rest; made once, it is kept."""
    made = layers(tmp_path, RESOLVES)
    first = made.install(release("1.0"))
    assert isinstance(first, Installed)
    assert first.packages == {"demo": "1.0", "torch": "2.0", "tqdm": "4.0"}
    _, install = asked(tmp_path)
    assert "'demo==1.0', 'tqdm==4.0'" in install
    assert "torch==2.0" not in install
    assert made.install(release("1.0")) == first
    assert len(asked(tmp_path)) == 2


def test_a_release_that_uv_has_not_heard_of_is_asked_for_again(tmp_path: Path) -> None:
    """It trusts a page of the index for minutes, and the plan has seen a newer one."""
    stale = f"if '--refresh-package' not in words: sys.exit({NO_VERSION.format('demo==1.0')!r})"
    made = layers(tmp_path, f"{stale}\n{RESOLVES}")
    assert isinstance(made.install(release("1.0")), Installed)


@pytest.mark.parametrize(
    ("log", "reason"),
    [
        (NO_VERSION.format("demo==1.0"), Reason.NO_SUCH_RELEASE),
        (NO_VERSION.format("other==1.0"), Reason.DEPENDENCY_CONFLICT),
        (NO_VERSION.format("demo==1.0.1"), Reason.DEPENDENCY_CONFLICT),
        ("Failed to build demo", Reason.INSTALL_FAILED),
    ],
)
def test_a_refusal_has_its_reason(tmp_path: Path, log: str, reason: Reason) -> None:
    """A dependency that does not exist is a conflict of the release, which does."""
    refused = layers(tmp_path, f"sys.exit({log!r})").install(release("1.0"))
    assert isinstance(refused, NotInstalled)
    assert refused.reason is reason
    assert log in refused.log
