"""A package index on the loopback interface, with one tiny release for each outcome.

The releases are of a package of their own name, `crossing-fixture`, which brings a module
`transformers` (see `tests/packages/`). Everything else comes from the user's own index.
"""

from __future__ import annotations

import base64
import hashlib
import io
import tarfile
import threading
import zipfile
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

PACKAGE = "crossing-fixture"
SOURCES = Path(__file__).parent / "packages"


@dataclass(frozen=True, slots=True, kw_only=True)
class FixtureRelease:
    """One version of the fixture package.

    Attributes:
        version: Its version.
        fault: What is wrong with it; see `tests/packages/transformers`.
        requires: Its requirements.
        yanked: Whether the index says so.
        builds: Whether it is a wheel; otherwise a source distribution that fails to build.
    """

    version: str
    fault: str = "agrees"
    requires: tuple[str, ...] = ()
    yanked: bool = False
    builds: bool = True


OUTCOMES = (
    FixtureRelease(version="1.0.0"),
    FixtureRelease(version="1.0.1"),
    FixtureRelease(version="1.1.0", fault="disagrees"),
    FixtureRelease(version="1.1.1", fault="disagrees"),
    FixtureRelease(version="1.2.0"),
    FixtureRelease(version="1.3.0", builds=False),
    # pytest is content with an older iniconfig than the newest, which the runtime has.
    FixtureRelease(version="1.4.0", requires=("iniconfig==2.0.0",)),
    FixtureRelease(version="1.4.1", requires=("torch<1",)),
    FixtureRelease(version="1.5.0", fault="fails to import"),
    FixtureRelease(version="1.6.0", fault="exits hard"),
    FixtureRelease(version="1.7.0", fault="hangs"),
    FixtureRelease(version="1.8.0", fault="eats memory"),
    FixtureRelease(version="1.9.0", fault="lacks the model"),
    FixtureRelease(version="1.10.0", fault="disagrees", yanked=True),
    FixtureRelease(version="1.11.0rc1", fault="disagrees"),
)
"""One release, or a few, for each way that a cell can end."""


def write_index(folder: Path, releases: tuple[FixtureRelease, ...]) -> None:
    """Write a simple index with these releases into `folder`."""
    project = folder / PACKAGE
    project.mkdir(parents=True, exist_ok=True)
    links: list[str] = []
    for release in releases:
        path = build_wheel(project, release) if release.builds else build_sdist(project, release)
        yanked = ' data-yanked=""' if release.yanked else ""
        links.append(f'<a href="{path.name}"{yanked}>{path.name}</a>')
    page = "<!DOCTYPE html><html><body>{}</body></html>"
    (project / "index.html").write_text(page.format("\n".join(links)), encoding="utf-8")
    (folder / "index.html").write_text(
        page.format(f'<a href="{PACKAGE}/">{PACKAGE}</a>'), encoding="utf-8"
    )


def fixture_files(release: FixtureRelease) -> dict[str, bytes]:
    """Path -> content of the module that a release installs."""
    files = {
        path.relative_to(SOURCES).as_posix(): path.read_bytes()
        for path in sorted(SOURCES.rglob("*.py"))
    }
    told = f"FAULT = {release.fault!r}\nVERSION = {release.version!r}\n"
    return {**files, "transformers/_fault.py": told.encode()}


def build_wheel(folder: Path, release: FixtureRelease) -> Path:
    """Write the wheel of a release into `folder`."""
    name = PACKAGE.replace("-", "_")
    info = f"{name}-{release.version}.dist-info"
    requires = "".join(f"Requires-Dist: {one}\n" for one in release.requires)
    files = {
        **fixture_files(release),
        f"{info}/METADATA": _metadata(release, requires),
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    rows = [
        f"{path},sha256={base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip('=')},{len(data)}"
        for path, data in files.items()
    ]
    record = f"{info}/RECORD"
    files[record] = "\n".join([*rows, f"{record},,", ""]).encode()
    path = folder / f"{name}-{release.version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as wheel:
        for member, data in files.items():
            wheel.writestr(zipfile.ZipInfo(member), data)
    return path


def build_sdist(folder: Path, release: FixtureRelease) -> Path:
    """Write a source distribution that fails to build into `folder`."""
    name = f"{PACKAGE.replace('-', '_')}-{release.version}"
    files = {
        "pyproject.toml": b'[build-system]\nrequires = []\nbuild-backend = "backend"\n'
        b'backend-path = ["."]\n',
        "backend.py": b"def build_wheel(*_):\n    raise RuntimeError('fails to build')\n"
        b"build_sdist = prepare_metadata_for_build_wheel = build_wheel\n",
        "PKG-INFO": _metadata(release, ""),
    }
    path = folder / f"{name}.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        for member, data in files.items():
            entry = tarfile.TarInfo(f"{name}/{member}")
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    return path


def _metadata(release: FixtureRelease, requires: str) -> bytes:
    head = f"Metadata-Version: 2.1\nName: {PACKAGE}\nVersion: {release.version}\n"
    return (head + requires).encode()


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (the parent's name)
        """Say nothing."""


@contextmanager
def serving(folder: Path) -> Iterator[str]:
    """Serve `folder` on the loopback interface; gives the address of the index."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
