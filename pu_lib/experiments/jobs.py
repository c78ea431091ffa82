"""Jobs on threads: a file has the rows of the finished ones, so that a command can be continued."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any

from pu_lib.files import replacing
from pu_lib.progress import progress_bar

__all__ = ["finish"]


def finish(
    path: Path,
    run: Callable[..., Any],
    jobs: list[tuple[Any, ...]],
    workers: int | None = None,
    shown: bool | None = None,
) -> list[list[Any]]:
    """Return the rows of all jobs, in order; run those not in the file and append their rows.

    Parameters
    ----------
    path : Path
        A file with one line of JSON for each finished job.
    run : callable
        Returns the row of a job, or the list of its rows, given the arguments of the job.
    jobs : list of tuple
        The arguments of the jobs.
    workers : int, optional
        The number of threads, by default one a processor. It does not change the results.
    shown : bool, optional
        Whether a progress bar is shown, by default in terminals and notebooks.
    """
    done: dict[str, list[Any]] = {}
    if path.exists():
        for line in path.read_text("utf-8").splitlines(keepends=True):
            if line.endswith("\n"):  # a stopped program may have written half a line
                entry = json.loads(line)
                done[entry["job"]] = entry["rows"]
        complete = "".join(
            json.dumps({"job": job, "rows": rows}) + "\n" for job, rows in done.items()
        )
        with replacing(path) as file:
            file.write(complete.encode())
    missing = [job for job in jobs if json.dumps(job) not in done]
    with (
        path.open("a", encoding="utf-8") as lines,
        ThreadPoolExecutor(workers or os.cpu_count()) as pool,
        progress_bar(len(jobs), shown) as bar,
    ):
        bar.update(len(jobs) - len(missing))
        futures = {pool.submit(run, *job): json.dumps(job) for job in missing}
        try:
            for future in as_completed(futures):
                result = future.result()
                rows = result if isinstance(result, list) else [result]
                done[futures[future]] = rows
                lines.write(json.dumps({"job": futures[future], "rows": rows}) + "\n")
                lines.flush()
                bar.update()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return [done[json.dumps(job)] for job in jobs]
