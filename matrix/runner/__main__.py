"""The server: keeps torch imported, and forks one process for each cell.

Standard input takes one line of JSON a message: a `Job`, or ``{"end": true}`` when there are
no more. Standard output gives one line for each cell that ended:
``{"cell": NAME, "ending": "done|timeout|died|failed", "exitcode": N, "message": TEXT}``.
If the input closes without an end, whoever asked is gone, and everything is stopped.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import sys
import threading
from concurrent.futures import Future, TimeoutError  # noqa: A004 (not the builtin before 3.11)
from functools import partial

from pebble import ProcessExpired, ProcessPool

from matrix.runner.cell import Job, run

PRELOAD = ("torch", "torch._dynamo", "torch.distributed.tensor", "numpy", "pytest")
"""What nearly every cell imports for seconds. Nothing of it may come from a layer."""


def serve(workers: int, seconds: float) -> None:
    """Run the jobs that come in, `workers` at a time, each for at most `seconds`."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(list(PRELOAD))
    output = threading.Lock()

    def report(job: Job, future: Future[None]) -> None:
        message = json.dumps({"cell": job.cell, **_ending(future)})
        with output:
            print(message, flush=True)

    # One task a process: no cell sees what another one left behind.
    with ProcessPool(max_workers=workers, max_tasks=1, context=context) as pool:
        for line in sys.stdin:
            if json.loads(line).get("end"):
                return
            job = Job.from_json(line)
            future = pool.schedule(run, args=[job], timeout=seconds)
            future.add_done_callback(partial(report, job))
        pool.stop()  # type: ignore[no-untyped-call]


def _ending(future: Future[None]) -> dict[str, object]:
    """How a cell's process ended, from what pebble says of it."""
    try:
        future.result()
    except TimeoutError:
        return {"ending": "timeout", "exitcode": None, "message": ""}
    except ProcessExpired as error:
        return {"ending": "died", "exitcode": error.exitcode, "message": str(error)}
    except BaseException as error:  # noqa: BLE001 (whatever the cell raised is its ending)
        return {"ending": "failed", "exitcode": None, "message": f"{type(error).__name__}: {error}"}
    return {"ending": "done", "exitcode": 0, "message": ""}


def main() -> None:
    """Serve until the input ends."""
    parser = argparse.ArgumentParser(prog="matrix.runner", description=__doc__.splitlines()[0])
    parser.add_argument("--workers", type=int, default=1, help="cells at a time")
    parser.add_argument("--seconds", type=float, default=300, help="most time for one cell")
    options = parser.parse_args()
    serve(options.workers, options.seconds)


if __name__ == "__main__":
    main()
