"""What can keep a case from being measured, each with the reason code of the record."""

from __future__ import annotations

_COMPILER_FAILED = "BackendCompilerFailed"  # torch's wrapper around an error of inductor


class NotMeasured(Exception):  # noqa: N818 - it says what came of a case, not always an error
    """A case could not be measured for a reason that is known.

    Attributes:
        status: the record's status.
        reason: the record's reason code.
    """

    status = "error"

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class Unsupported(NotMeasured):
    """This release cannot do what the case needs."""

    status = "unsupported"


class NotRun(NotMeasured):
    """Nothing was run, e.g. because the machine has no such device."""

    status = "not_run"


class ImportFailed(NotMeasured):
    """This release has the model, and cannot import it in this environment."""


class CheckError(NotMeasured):
    """The check doesn't understand this release, or is itself wrong."""

    status = "error"

    def __init__(self, message: str) -> None:
        super().__init__("check_error", message)


class CaseTimeout(BaseException):
    """A case ran past its time limit.

    Not an :class:`Exception`, so that a release's own ``except Exception`` doesn't swallow it.
    """


def from_compiler(error: BaseException) -> bool:
    """Whether it was torch's compiler that failed, which neither a release nor the check has made.

    Flex attention is compiled for the machine, and what torch cannot compile says nothing about
    the release that asked for it.
    """
    seen: BaseException | None = error
    while seen is not None:
        kind = type(seen)
        if kind.__module__.startswith("torch._inductor") or kind.__name__ == _COMPILER_FAILED:
            return True
        seen = seen.__cause__ or seen.__context__
    return False
