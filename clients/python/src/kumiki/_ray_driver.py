"""What the machine that asks for a sweep does for `kumiki.ray`: which rows go out, what has come back, the merge."""

from __future__ import annotations

import json
import os
import pathlib
import re
import shutil
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any, Union

from kumiki import _arguments, _ray_node
from kumiki._program import Place
from kumiki._ray_node import Files
from kumiki.errors import KumikiError, ValidationError

#: Rows of one task at most, so that a lost node loses little.
ROWS_PER_TASK_MAX = 1_000
#: Tasks of one sweep at most: their folders are named in one command of the merge.
TASKS_MAX = 20_000
#: Tasks for each place where one can run, unless the caller says how large they are.
TASKS_PER_PLACE = 4
#: Bytes of a component's file, and of a file of points; as the program has them.
_COMPONENT_BYTES_MAX, _POINTS_BYTES_MAX = 64 << 20, 256 << 20
#: What `kumiki.ray.sweep` says itself.
_OWN = ("--data", "--instrument", "--out", "--rows", "--unverified", "--points", "--grid", "--param", "--format",
        "--quiet", "-q", "--jobs", "--from", "--to", "--start", "--end", "--granularity", "--cash", "--random",
        "--seed", "--walk-forward", "--rank-by", "--verify", "--limit", "--top")
_ROWS = re.compile(r"rows-(\d+)-(\d+)")

#: A value of a parameter.
Value = Union[bool, int, float, str, Decimal]
#: The values of a swept parameter: as `--grid` writes them (`5:50:5` or `5,10,20`), or one after the other.
Values = Union[str, Iterable[Value]]


def text(value: Value) -> str:
    """A parameter's value as the program reads it. Raises ValidationError."""
    value = _arguments.plain(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if not isinstance(value, (int, float, str, Decimal)):
        raise _arguments.wrong("a parameter", value, "a number, a text, True or False")
    return repr(value) if isinstance(value, float) else f"{value:f}" if isinstance(value, Decimal) else str(value)


def grid_flags(grid: Mapping[str, Values] | None) -> list[str]:
    """The flags of a grid."""
    flags = []
    for name, values in (grid or {}).items():
        written = values if isinstance(values, str) else ",".join(text(value) for value in values)
        flags += ["--grid", f"{name}={written}"]
    return flags


def points_bytes(points: Place | Iterable[Mapping[str, Value]] | None) -> bytes | None:
    """A file of points: the one that is named, or JSON lines of these. Raises ValidationError."""
    if points is None:
        return None
    if isinstance(points, (str, os.PathLike)):
        content = _file("points", pathlib.Path(points), _POINTS_BYTES_MAX)
    else:
        named = (_arguments.values(f"points[{row}]", point, "a dict of parameters") for row, point in enumerate(points))
        content = "".join(json.dumps(point) + "\n" for point in named).encode()
    if len(content) > _POINTS_BYTES_MAX:
        raise ValidationError(f"points: more than {_POINTS_BYTES_MAX} bytes", code="validation_error")
    return content


def strategy_of(strategy: Place) -> tuple[str, bytes | None]:
    """The name of a built-in strategy; or the name and the bytes of a component's file, as the program tells them
    apart. Raises ValidationError."""
    name = os.fspath(strategy)
    if not name.endswith(".wasm") and not re.search(r"[/\\]", name):
        return name, None
    path = pathlib.Path(name)
    return path.name, _file("strategy", path, _COMPONENT_BYTES_MAX)


def on_nodes(program: Place | None) -> str | None:
    """How nodes find a program that is named: a path is the same everywhere, a name is looked up there."""
    if program is None:
        return None
    name = os.fspath(program)
    return os.path.abspath(name) if os.path.dirname(name) else name


def _file(what: str, path: pathlib.Path, bytes_max: int) -> bytes:
    try:
        size = path.stat().st_size
        if size > bytes_max:
            raise ValidationError(f"{what}: {path} has {size} bytes, at most {bytes_max}", code="validation_error")
        return path.read_bytes()
    except OSError as error:
        raise ValidationError(f"{what}: {path} cannot be read: {error}", code="validation_error") from None


def others(arguments: Sequence[str]) -> list[str]:
    """More flags of the program. Raises ValidationError for those that are said otherwise."""
    for argument in arguments:
        flag = argument.split("=")[0]
        if flag in _OWN:
            raise ValidationError(f"arguments: {flag} has its own argument; see kumiki.ray.sweep",
            code="validation_error")
    return list(arguments)


class Parts:
    """The folder beside the sweep's own that holds what has come back, until all of it has.

    It outlives this process: the same sweep goes on where it was.
    """

    def __init__(self, out: pathlib.Path) -> None:
        self._out = out
        self.folder = out.with_name(out.name + ".parts")
        self._pinned: bytes | None = None
        #: The manifest of the sweep where it is complete already; known once the rows are counted.
        self.done: dict[str, Any] | None = None

    def ranges(self) -> list[tuple[int, int]]:
        """The rows that are there, each range from the first to one before the end, in rising order."""
        if not self.folder.is_dir():
            return []
        found = (_ROWS.fullmatch(path.name) for path in self.folder.iterdir())
        return sorted((int(one[1]), int(one[2])) for one in found if one)

    def count(self, files: Files) -> int:
        """How many rows the sweep has, as a part without any tells it; whatever is there must be of the same sweep.

        Raises KumikiError.
        """
        (content,) = (content for name, content in files.items() if name.endswith(".json"))
        manifest = json.loads(content)
        self._pinned = _first_line(files)
        self.done = self._done(manifest)
        for first, end in self.ranges():
            journal = self._place(first, end) / "journal.jsonl"
            with journal.open("rb") as lines:
                if lines.readline() != self._pinned:
                    text = f"out: {self.folder} has parts of another sweep; remove it, or choose another folder"
                    raise KumikiError(text, code="validation_error")
        self.folder.mkdir(parents=True, exist_ok=True)
        return int(manifest["runs_total"])

    def _done(self, asked: Mapping[str, Any]) -> dict[str, Any] | None:
        """The manifest of the same sweep, where it is complete. What else is in the way is told before the work."""
        journal, manifest = self._out / "journal.jsonl", self._out / "sweep.json"
        if journal.is_file():
            with journal.open("rb") as lines:
                if lines.readline() != self._pinned:
                    text = f"out: {self._out} has another sweep; remove it, or choose another folder"
                    raise KumikiError(text, code="validation_error")
        elif self._out.exists() and any(self._out.iterdir()):
            text = f"out: {self._out} is not empty and holds no sweep; choose another folder"
            raise KumikiError(text, code="validation_error")
        if not manifest.is_file():
            return None
        there: dict[str, Any] = json.loads(manifest.read_text(encoding="utf-8"))
        for name in ("rank_by", "verify"):
            if there.get(name) != asked[name]:
                text = f"out: {self._out} has this sweep with {name}={there.get(name)!r}, not {asked[name]!r}"
                raise KumikiError(f"{text}; remove it, or choose another folder", code="validation_error")
        return there

    def missing(self, rows: int, each: int) -> list[tuple[int, int]]:
        """The ranges that are to be made, none longer than `each`."""
        gaps, at = [], 0
        for first, end in [*self.ranges(), (rows, rows)]:
            gaps += [(start, min(start + each, first)) for start in range(at, first, each)]
            at = max(at, end)
        return gaps

    def keep(self, first: int, end: int, files: Files) -> None:
        """Keeps what a task has made; it is there as a whole or not at all.

        Raises KumikiError where it is of another sweep: a node has other data, or another program.
        """
        if _first_line(files) != self._pinned:
            made, wanted = (json.loads(line or b"{}") for line in (_first_line(files), self._pinned))
            names = [name for name in wanted if made.get(name) != wanted[name] and name != "checksum"]
            text = f"rows {first}..{end} belong to another sweep; the nodes differ in {', '.join(names)}"
            raise KumikiError(text, code="nodes_differ")
        self._write(self._place(first, end), files)

    def merge(self, program: str, points: bytes | None, names: Sequence[str], out: pathlib.Path) -> dict[str, Any]:
        """Merges parts by their names into a folder, which may miss something, and gives what the program said of it.

        Raises KumikiError.
        """
        command = [program, "replay", "merge", *names, "--out", os.path.abspath(out), "--partial",
                   "--format", "json"]
        if points is not None:
            (self.folder / "points").write_bytes(points)
            command += ["--points", "points"]
        said = _ray_node.call(command, self.folder)
        try:
            told: dict[str, Any] = json.loads(said.stdout)["sweep"]
        except (ValueError, KeyError, TypeError):
            text = f"`kumiki replay merge` ended with {said.returncode}: {_ray_node.last_words(said)}"
            raise KumikiError(text, code="merge_failed") from None
        return told

    def whole(self, files: Files) -> str:
        """Keeps the sweep that somebody went on with, and gives its name."""
        shutil.rmtree(self.folder / "whole", ignore_errors=True)
        self._write(self.folder / "whole", files)
        return "whole"

    def names(self) -> list[str]:
        """The names of the parts."""
        return [self._place(first, end).name for first, end in self.ranges()]

    def remove(self) -> None:
        """Removes all of it, once it is merged."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def _place(self, first: int, end: int) -> pathlib.Path:
        return self.folder / f"rows-{first}-{end}"

    def _write(self, place: pathlib.Path, files: Files) -> None:
        aside = pathlib.Path(tempfile.mkdtemp(prefix="unfinished-", dir=self.folder))
        for name, content in files.items():
            (aside / name).write_bytes(content)
        aside.rename(place)


def _first_line(files: Files) -> bytes:
    journal = files["journal.jsonl"]
    return journal[:journal.find(b"\n") + 1]
