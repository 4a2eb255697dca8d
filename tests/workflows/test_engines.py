"""The shell loop of docs/engines.md, run as it stands there."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fixture_index import PACKAGE, FixtureRelease, serving, write_index
from tests.pipeline.harness import ROOT, Harness

pytestmark = pytest.mark.slow

RELEASES = (
    FixtureRelease(version="2.0.0"),
    FixtureRelease(version="2.1.0", fault="disagrees"),
    FixtureRelease(version="2.2.0"),
)


def script() -> str:
    """The loop, with the site in a place of its own."""
    text = (ROOT / "docs" / "engines.md").read_text(encoding="utf-8")
    found = re.search(r"## A shell\n\n```sh\n(.*?)```", text, re.DOTALL)
    assert found
    return found[1].replace("--plan plan.json\n", "--plan plan.json --site site\n")


def test_several_processes_make_one_report(tmp_path: Path, runtimes: Path) -> None:
    """Three shards at a time, each in a folder of its own, gathered and rendered."""
    write_index(tmp_path / "index", RELEASES)
    checkout = tmp_path / "checkout"
    checkout.mkdir()
    for name in ("matrix", "checks", "reports", "pyproject.toml"):
        (checkout / name).symlink_to(ROOT / name)
    for shard in ("1", "2", "3"):
        (checkout / "shards" / shard).mkdir(parents=True)
        (runtimes / "runtimes").mkdir(exist_ok=True)
        (checkout / "shards" / shard / "runtimes").symlink_to(runtimes / "runtimes")
    with serving(tmp_path / "index") as address:
        harness = Harness(folder=tmp_path, runtimes=runtimes, index=address)
        harness.write_grid(
            package=PACKAGE,
            since="2.0.0",
            run=("all",),
            scenarios=("below-boundary", "decode-crossing"),
        )
        environ = harness.environ()
        environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), environ["PATH"]])
        done = subprocess.run(
            ["sh", "-e", "-c", script()],
            cwd=checkout,
            env=environ,
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
    assert done.returncode == 0, done.stdout + done.stderr
    ledgers = sorted(path.parent.name for path in (checkout / "shards").glob("*/ledger"))
    assert ledgers == ["1", "2", "3"], done.stdout + done.stderr
    results = json.loads((checkout / "site" / "results.json").read_bytes())
    assert {one["transformers"]: one["statement"] for one in results["statements"]} == {
        "2.0.0": "not_affected",
        "2.1.0": "affected",
        "2.2.0": "fixed",
    }
    assert results["coverage"]["undecided"] == 0
    assert {one["reason"] for one in results["records"]} == {None, "no_device"}
