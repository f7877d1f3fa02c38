"""Sweeps on a Ray cluster: its nodes share the rows of one sweep. The folder is the same as from one machine.

    import kumiki

    result = kumiki.ray.sweep(
        "sma-cross", data="data", instruments="7203.TSE", out="sweeps/large",
        grid={"fast": "5:50:1", "slow": "60:600:10"}, on_progress=print,
    )
    print(result.best_parameters, result.table())

This machine and every node need the same wheel of this package, with Ray:
`pip install "$(ls dist/kumiki-*.whl)[ray]"`. The cluster is the one that `ray.init` joined before. Else Ray starts or
finds one as it always does.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import json
import logging
import math
import os
import pathlib
from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Callable

from kumiki import _arguments, _program, _ray_node
from kumiki._program import Place
from kumiki._ray_driver import (
    ROWS_PER_TASK_MAX, TASKS_MAX, TASKS_PER_PLACE, Parts, Value, Values, grid_flags, on_nodes, others, points_bytes,
    strategy_of, text,
)
from kumiki._ray_node import Made, Task
from kumiki.errors import KumikiError, MissingPackageError, ValidationError
from kumiki.results import frame
from kumiki.times import Date, date_text

__all__ = ["SweepProgress", "SweepResult", "sweep"]

LOG = logging.getLogger("kumiki.ray")
#: Tasks that wait in the cluster at the same time.
_TASKS_WAITING_MAX = 1_000


@dataclass(frozen=True)
class SweepProgress:
    """How far a sweep is."""

    #: Rows that are done, and all of them; a row is one run.
    done: int
    total: int
    #: Rows from an earlier call.
    kept: int
    #: Rows that each node made, by Ray's names of the nodes.
    nodes: Mapping[str, int]


@dataclass(frozen=True)
class SweepResult:
    """A sweep that is over. Its folder has what `kumiki replay sweep` writes: sweep.csv, .parquet, .html and .json."""

    folder: pathlib.Path
    #: Runs, and how many of them failed.
    runs: int
    failed: int
    #: The row of the best run and its parameters; None where no run is ranked.
    best_run: int | None
    best_parameters: Mapping[str, Any] | None
    #: Rows that each node made, by Ray's names of the nodes, without rows from an earlier call.
    nodes: Mapping[str, int] = field(default_factory=dict)

    def table(self, *, backend: str = "pandas", exact: bool = True) -> Any:
        """The table as a data frame of pandas or polars, one row for each run. `kumiki.schema("replay-sweep.json")`
        describes its columns."""
        return frame(self.folder / "sweep.parquet", backend=backend, exact=exact)

    def manifest(self) -> dict[str, Any]:
        """What the sweep was made from, and how much of it may be luck."""
        fields: dict[str, Any] = json.loads((self.folder / "sweep.json").read_text(encoding="utf-8"))
        return fields


def sweep(
    strategy: Place,
    *,
    data: Place,
    instruments: str | Sequence[str],
    out: Place,
    grid: Mapping[str, Values] | None = None,
    points: Place | Iterable[Mapping[str, Value]] | None = None,
    params: Mapping[str, Value] | None = None,
    start: Date | None = None,
    end: Date | None = None,
    granularity: str | None = None,
    cash: int | None = None,
    random: int | None = None,
    seed: int | None = None,
    walk_forward: str | None = None,
    rank_by: str | None = None,
    verify: int | None = None,
    arguments: Sequence[str] = (),
    shared: bool = False,
    rows_per_task: int | None = None,
    cpus_per_task: int = 1,
    retries: int = 3,
    program: Place | None = None,
    node_dir: Place | None = None,
    on_progress: Callable[[SweepProgress], object] | None = None,
) -> SweepResult:
    """Makes a sweep on the cluster. The folder `out` gets the same table, manifest and page as from one machine.

    What is swept: `strategy` is a built-in one's name or the path of a component; `grid` has the values of each
    parameter, as `{"fast": "5:50:5"}` or `{"fast": [5, 10, 20]}`, of which the last changes fastest; or `points` are
    the sets of parameters themselves, as dictionaries or the path of a CSV or JSON lines file. `params` are the same
    in every run. `random` of the combinations are drawn with `seed`. Dates are those of Japan, both included; `cash`
    is in yen, and 10,000,000 unless you give it; `granularity`, `walk_forward`, `rank_by` and `verify` are as of
    `kumiki help replay sweep`, and `arguments` are more of its flags, as `["--slippage-ticks", "1"]`.

    Where: `data` is the folder of the vendor's files. It is shipped once to each node through Ray's object store and
    unpacked in `node_dir` there (else a folder of the user's in the system's temporary one); with `shared=True` it is
    a path that every node sees. A task makes `rows_per_task` rows with `cpus_per_task` threads on as many CPUs of
    Ray's; it holds the data in memory once. `program` is the kumiki program, here and on the nodes (else
    KUMIKI_PROGRAM, the one of this package, or the first on the PATH).

    If a node is lost, another node repeats its task, `retries` times; -1 has no limit. `on_progress` gets a
    `SweepProgress` on this thread after each task. `OUT.parts`, beside `out`, keeps the finished rows until all are
    there. After an error, Ctrl-C or the end of this process the same call goes on from there. At the end one task
    repeats the best runs with window 1 and makes the test runs of a walk forward, which need all others.

    Raises MissingPackageError without Ray, ValidationError, ProgramNotFoundError, or KumikiError: with the program's
    message, or because nodes were lost too often.
    """
    ray = _ray()
    if (grid is None) == (points is None):
        raise ValidationError("grid: give the values of a grid, or points, and not both", code="validation_error")
    cpus_per_task, retries = _arguments.whole("cpus_per_task", cpus_per_task), _arguments.whole("retries", retries)
    rows_per_task = None if rows_per_task is None else _arguments.whole("rows_per_task", rows_per_task)
    for name, number in (("cpus_per_task", cpus_per_task), ("rows_per_task", rows_per_task)):
        if number is not None and number < 1:
            raise ValidationError(f"{name}: {number} is not above 0", code="validation_error")
    for name, number in (("cash", cash), ("random", random), ("seed", seed), ("verify", verify)):
        if number is not None:
            _arguments.whole(name, number)
    _arguments.function("on_progress", on_progress)
    names = [instruments] if isinstance(instruments, str) else _arguments.texts(
        "instruments", instruments, "a text like 7203.TSE, or a list of them")
    flags = [part for name in names for part in ("--instrument", name)] + grid_flags(grid)
    for name, value in (params or {}).items():
        flags += ["--param", f"{name}={text(value)}"]
    given: tuple[tuple[str, object], ...] = (
        ("--from", None if start is None else date_text(start, "start")),
        ("--to", None if end is None else date_text(end, "end")),
        ("--granularity", granularity), ("--cash", cash), ("--random", random), ("--seed", seed),
        ("--walk-forward", walk_forward), ("--rank-by", rank_by), ("--verify", verify),
    )
    if verify is not None:
        # Nobody reads what a node prints, and as many as are printed would be made again.
        flags += ["--limit", "1"]
    flags += [part for flag, value in given if value is not None for part in (flag, str(value))] + others(arguments)
    folder, here = pathlib.Path(data), _program.find(program)
    component_name, component = strategy_of(strategy)
    archive = b"" if shared else _archive(folder)
    task = Task(
        arguments=tuple(flags), strategy=component_name, component=component, points=points_bytes(points),
        data=str(folder.absolute()) if shared else hashlib.sha256(archive).hexdigest(), is_shipped=not shared,
        program=on_nodes(program), node_dir=None if node_dir is None else os.path.abspath(node_dir),
        jobs=cpus_per_task,
    )
    spread = _Spread(ray, task, archive, cpus_per_task, retries)
    parts = Parts(pathlib.Path(out).absolute())
    total = parts.count(spread.one("0..0", None).files)
    if parts.done is not None:
        parts.remove()
        return _result(pathlib.Path(out), parts.done, {})
    kept = sum(end - first for first, end in parts.ranges())
    places = max(1, int(ray.cluster_resources().get("CPU", 1)) // cpus_per_task)
    each = rows_per_task or min(ROWS_PER_TASK_MAX, math.ceil(total / places / TASKS_PER_PLACE))
    each = max(1, each, math.ceil(total / TASKS_MAX))
    nodes: dict[str, int] = {}
    progress = SweepProgress(kept, total, kept, nodes)
    LOG.info("%d of %d rows to be made, %d in each task, %d tasks at a time", total - kept, total, each, places)
    # Closed at once where `on_progress` or Ctrl-C ends it: tasks that run are cancelled then.
    with contextlib.closing(spread.all(parts.missing(total, each))) as all_made:
        for (first, last), made in all_made:
            parts.keep(first, last, made.files)
            nodes[made.node] = nodes.get(made.node, 0) + last - first
            progress = SweepProgress(progress.done + last - first, total, kept, dict(nodes))
            LOG.info("rows %d..%d are done on node %s; %d of %d", first, last, made.node, progress.done, total)
            if on_progress is not None:
                on_progress(progress)
    found = parts.merge(here, task.points, parts.names(), parts.folder / "merged")
    name = "merged"
    if found["status"] != "complete":
        # The best are known now.
        journal = (parts.folder / "merged" / "journal.jsonl").read_bytes()
        name = parts.whole(spread.one(None, journal).files)
    found = parts.merge(here, task.points, [name], pathlib.Path(out))
    if found["status"] != "complete":
        where = f"the finished rows are in {parts.folder}"
        raise KumikiError(f"out: {out} is not complete; {where}; make the same call again")
    parts.remove()
    return _result(pathlib.Path(out), found, nodes)


def _result(folder: pathlib.Path, manifest: Mapping[str, Any], nodes: Mapping[str, int]) -> SweepResult:
    return SweepResult(
        folder=folder, runs=manifest["runs_total"], failed=manifest["runs_failed"], best_run=manifest["best_run"],
        best_parameters=manifest["best_parameters"], nodes=nodes,
    )


def _ray() -> Any:
    try:
        return importlib.import_module("ray")
    except ImportError as error:
        install = 'pip install "$(ls dist/kumiki-*.whl)[ray]"'
        raise MissingPackageError(f"{error}; sweeps on a cluster need it: {install}") from None


def _archive(folder: pathlib.Path) -> bytes:
    try:
        return _ray_node.packed(folder)
    except OSError as error:
        raise ValidationError(f"data: {folder} cannot be read: {error}", code="validation_error") from None


def _made(task: Task, rows: str | None, journal: bytes | None, archive: Sequence[Any]) -> Made:
    """What runs on a node. The archive is a reference in a list, so that only who needs it fetches it."""
    ray = _ray()

    def fetch() -> bytes:
        content: bytes = ray.get(archive[0])
        return content

    return _ray_node.run(task, rows, journal, str(ray.get_runtime_context().get_node_id()), fetch)


class _Spread:
    """Tasks of one sweep on the cluster. Ray makes those of lost nodes again."""

    def __init__(self, ray: Any, task: Task, archive: bytes, cpus: int, retries: int) -> None:
        self._ray = ray
        # Both are put once; nodes fetch them from each other.
        self._task = ray.put(task)
        self._archive = [ray.put(archive)] if archive else []
        self._remote = ray.remote(
            num_cpus=cpus, max_retries=retries, retry_exceptions=False, scheduling_strategy="SPREAD"
        )(_made)

    def one(self, rows: str | None, journal: bytes | None) -> Made:
        """One task, to its end."""
        return self._got(self._remote.remote(self._task, rows, journal, self._archive), rows or "the rest")

    def all(self, ranges: Sequence[tuple[int, int]]) -> Generator[tuple[tuple[int, int], Made], None, None]:
        """A task for each of these ranges of rows, as they are done."""
        waiting: dict[Any, tuple[int, int]] = {}
        left = list(reversed(ranges))
        try:
            while left or waiting:
                while left and len(waiting) < _TASKS_WAITING_MAX:
                    rows = left.pop()
                    waiting[self._remote.remote(self._task, "{}..{}".format(*rows), None, self._archive)] = rows
                (done, *_), _ = self._ray.wait(list(waiting), num_returns=1)
                rows = waiting.pop(done)
                yield rows, self._got(done, "{}..{}".format(*rows))
        finally:
            for reference in waiting:
                # What still runs is of no use any more; it ends its program and tidies up.
                self._ray.cancel(reference)

    def _got(self, reference: Any, rows: str) -> Made:
        try:
            made: Made = self._ray.get(reference)
        except self._ray.exceptions.RayError as error:
            raise KumikiError(f"rows {rows}: {type(error).__name__}: {error}", code="node_lost") from error
        if made.error:
            raise KumikiError(f"rows {rows} on node {made.node}: {made.error}", code=made.code)
        return made
