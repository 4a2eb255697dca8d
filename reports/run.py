"""What the harness hands over beside the records: the run that they are reported for."""

from __future__ import annotations

import msgspec


class RunInfo(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Facts about the run that no single record knows.

    The report reads no clock and no environment: whatever it says about "now" is in here.

    Attributes:
        generated_at: When the report is made, ISO 8601 in UTC with a ``Z``.
        check_revision: Revision of `checks/` whose records count.
        harness_commit: Commit of this repository.
        repository: Address of this repository, for links and reproducers; None if unknown.
        site_url: Address that the site is published under, ending in ``/``; None if unknown.
            The feed and OSV need absolute addresses; every page works without.
        planned: Cells of the plan, ``RELEASE RUNTIME`` each.
        releases: Every release that the index offered within the grid, tested or not.
        local: Cells whose records are not in the committed ledger, ``(release, runtime)``.
        problems: What went wrong outside of any cell, a sentence each.
        packages: The packages of a cell, ``name==version`` each, by the key that
            `Provenance.packages` has.
        phases: How long each phase of the run took, in seconds.
        stale_after_days: Age, in days, from which a measurement of a moving ref is stale.
    """

    generated_at: str
    check_revision: str
    harness_commit: str | None = None
    repository: str | None = None
    site_url: str | None = None
    planned: tuple[str, ...] = ()
    releases: tuple[str, ...] = ()
    local: tuple[tuple[str, str], ...] = ()
    problems: tuple[str, ...] = ()
    packages: dict[str, tuple[str, ...]] = {}
    phases: tuple[tuple[str, float], ...] = ()
    stale_after_days: int = 7

    @property
    def date(self) -> str:
        """The day of the report, ``2026-11-30``."""
        return self.generated_at[:10]
