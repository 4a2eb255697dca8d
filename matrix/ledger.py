"""The ledger: records in files, one small file for each release on each runtime.

A file is lines of JSON. A line of kind ``cell`` says what its records share (release, runtime,
provenance); the lines of kind ``case`` behind it are the records. Order and spelling are
canonical, so that a new record is one new line in a diff. The exact packages of a cell are
in ``locks/KEY.txt``, once for each distinct set.

There are two: the committed one in ``reports/ledger/``, and the local one of the work folder
for results that nobody has asked to keep.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import tempfile
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

import filelock
import msgspec

from matrix.errors import CorruptFileError, DiskFullError
from matrix.records import Defect, Evidence, Provenance, Reason, Record, Source, Status

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

DISK_FULL = (errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC))


class _Cell(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="cell"):
    """What the records of one cell, made in one run, share."""

    transformers: str
    source: Source
    ref: str | None
    commit: str | None
    released_at: str | None
    python: str
    torch: str
    provenance: Provenance


class _Case(
    msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="case", omit_defaults=True
):
    """The rest of one record."""

    case: str
    status: Status
    defect: Defect | None = None
    reason: Reason | None = None
    evidence: Evidence = msgspec.field(default_factory=Evidence)


_DECODER = msgspec.json.Decoder(_Cell | _Case)
_ENCODER = msgspec.json.Encoder()


@dataclass(frozen=True, slots=True, kw_only=True)
class Damaged:
    """A file of the ledger that could not be read, and why."""

    path: Path
    reason: str

    def __str__(self) -> str:
        return f"{self.path}: {self.reason}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """Two measurements of the same case of the same release that disagree: a finding."""

    known: Record
    measured: Record

    def __str__(self) -> str:
        def outcome(record: Record) -> str:
            return f"{record.status}" + (f" ({record.defect})" if record.defect else "")

        return (
            f"{self.known.release} on {self.known.runtime}, {self.known.case}: recorded as "
            f"{outcome(self.known)}, measured here as {outcome(self.measured)}"
        )


@dataclass(frozen=True, slots=True)
class Ledger:
    """Records kept under one folder."""

    root: Path

    def load(self) -> tuple[tuple[Record, ...], tuple[Damaged, ...]]:
        """All records, in the order of the files, and the files that could not be read."""
        records: list[Record] = []
        damaged: list[Damaged] = []
        for path in sorted(self.root.glob("*/*.jsonl")):
            try:
                records.extend(read_file(path))
            except CorruptFileError as error:
                damaged.append(Damaged(path=path, reason=error.message))
        return tuple(records), tuple(damaged)

    def add(self, records: Iterable[Record], *, replace: bool) -> tuple[Difference, ...]:
        """Put records into the files that they belong to.

        A record made under another revision of the checks gives way to the new one; so does
        one that decided nothing because something failed. Of two that were made under the
        same revision the first stays, unless `replace`. Safe beside other processes that do
        the same. A damaged file is kept beside the new one, with another ending.

        Returns:
            Where a new conclusive record disagrees with the one that stays.

        Raises:
            DiskFullError: No space is left; the file is as it was before.
        """
        differences: list[Difference] = []
        by_path: dict[Path, list[Record]] = {}
        for record in records:
            by_path.setdefault(self.path_of(record), []).append(record)
        for path, new in sorted(by_path.items()):
            path.parent.mkdir(parents=True, exist_ok=True)
            with filelock.FileLock(self.root / ".lock"):
                known = {record.case: record for record in _read_or_set_aside(path)}
                for record in new:
                    old = known.get(record.case)
                    if old is not None and not replace and _stays(old, record):
                        if disagree(old, record):
                            differences.append(Difference(known=old, measured=record))
                        continue
                    known[record.case] = record
                write_atomically(path, _encode(known.values()))
        return tuple(differences)

    def path_of(self, record: Record) -> Path:
        """The file for a record: ``RUNTIME/RELEASE.jsonl``."""
        return self.file(record.runtime, release_key(record))

    def file(self, runtime: str, key: str) -> Path:
        """The file for a release's key on a runtime."""
        return self.root / runtime_folder(runtime) / f"{key}.jsonl"

    def add_lock(self, packages: Mapping[str, str]) -> str:
        """Keep the exact packages of a cell; returns the key, the same for the same packages."""
        text = "".join(f"{name}=={version}\n" for name, version in sorted(packages.items()))
        key = hashlib.sha256(text.encode()).hexdigest()[:12]
        path = self.root / "locks" / f"{key}.txt"
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(path, text.encode())
        return key

    def lock(self, key: str) -> dict[str, str] | None:
        """The packages behind a key; None where this ledger does not have it."""
        path = self.root / "locks" / f"{key}.txt"
        if not path.is_file():
            return None
        lines = path.read_text(encoding="utf-8").split()
        return dict(line.split("==", 1) for line in lines)


def runtime_folder(name: str) -> str:
    """``3.11/2.13.0`` as one part of a path: ``py3.11-torch2.13.0``."""
    python, _, torch = name.partition("/")
    return re.sub(r"[^A-Za-z0-9.+=-]+", "-", f"py{python}-torch{torch}")


def release_key(record: Record) -> str:
    """A file name that always stands for the same sources."""
    if record.source is Source.GIT and record.commit:
        return f"git-{record.commit[:12]}"
    return re.sub(r"[^A-Za-z0-9.+=-]+", "-", record.release)


def read_file(path: Path) -> list[Record]:
    """The records of one file.

    Raises:
        CorruptFileError: Something in it is not as this module writes it.
    """
    records: list[Record] = []
    cell: _Cell | None = None
    try:
        for line in _DECODER.decode_lines(path.read_bytes()):
            if isinstance(line, _Cell):
                cell = line
            else:
                records.append(_record(cell, line))
    except (msgspec.MsgspecError, ValueError, OSError) as error:
        raise CorruptFileError(
            str(error), advice=f"Restore {path} from version control, or delete it to run it again."
        ) from error
    return records


def _record(cell: _Cell | None, line: _Case) -> Record:
    if cell is None:
        raise ValueError("it begins with a case that belongs to no cell")
    model, scenario, attention, device, dtype = line.case.split("/")
    return Record(
        transformers=cell.transformers,
        source=cell.source,
        ref=cell.ref,
        commit=cell.commit,
        released_at=cell.released_at,
        python=cell.python,
        torch=cell.torch,
        model=model,
        scenario=scenario,
        attention=attention,
        device=device,
        dtype=dtype,
        status=line.status,
        defect=line.defect,
        reason=line.reason,
        evidence=line.evidence,
        provenance=cell.provenance,
    )


def _encode(records: Iterable[Record]) -> bytes:
    ordered = sorted((_ENCODER.encode(_cell_of(record)), record.case, record) for record in records)
    lines: list[bytes] = []
    for cell, members in groupby(ordered, key=lambda entry: entry[0]):
        lines.append(cell)
        lines += [_ENCODER.encode(_case_of(record)) for _, _, record in members]
    return b"\n".join(lines) + b"\n"


def _cell_of(record: Record) -> _Cell:
    return _Cell(
        transformers=record.transformers,
        source=record.source,
        ref=record.ref,
        commit=record.commit,
        released_at=record.released_at,
        python=record.python,
        torch=record.torch,
        provenance=record.provenance,
    )


def _case_of(record: Record) -> _Case:
    return _Case(
        case=record.case,
        status=record.status,
        defect=record.defect,
        reason=record.reason,
        evidence=record.evidence,
    )


def is_settled(record: Record) -> bool:
    """Whether running the case again, under the same checks, could tell nothing new.

    What failed on the way (no network, a crash) is tried again next time.
    """
    if record.status is Status.NOT_RUN:
        return record.reason is Reason.NO_DEVICE
    return record.status is not Status.ERROR


def _stays(old: Record, new: Record) -> bool:
    same_checks = old.provenance.check_revision == new.provenance.check_revision
    return same_checks and is_settled(old)


def disagree(old: Record, new: Record) -> bool:
    """Whether two measurements of one case are both conclusive, and not alike."""
    both = old.status.conclusive and new.status.conclusive
    return both and (old.status, old.defect) != (new.status, new.defect)


def _read_or_set_aside(path: Path) -> list[Record]:
    if not path.exists():
        return []
    try:
        return read_file(path)
    except CorruptFileError:
        path.replace(path.with_suffix(".damaged"))
        return []


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file so that others see all of it or the one before.

    Raises:
        DiskFullError: No space is left.
    """
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=".", suffix=".part")
    temporary = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        temporary.chmod(0o644)
        temporary.replace(path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        if error.errno in DISK_FULL:
            raise DiskFullError(
                f"No space is left to write {path}.",
                advice="Free some space and run the same command again; finished cells are kept.",
            ) from error
        raise
