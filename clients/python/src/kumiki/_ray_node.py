"""What a node of a Ray cluster does for `kumiki.ray`: it unpacks the data once, and runs the program on its rows.

Nothing here imports Ray: it hands over how something is fetched.
"""

from __future__ import annotations

import contextlib
import getpass
import hashlib
import io
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Callable

from kumiki import _program
from kumiki.errors import KumikiError

#: Bytes of a data folder that are sent through the object store; more belongs on shared storage.
SHIPPED_BYTES_MAX = 16 << 30
#: Data folders that a node keeps, beside those that were used within `_IN_USE_S`.
DATA_FOLDERS_KEPT = 4
#: Seconds for which nothing of a node's folder is taken for left over: a task that takes longer is rare, and its
#: data are unpacked again.
_IN_USE_S = 24 * 3600.0
#: Turns of ten seconds for which a task waits on Windows while another one unpacks.
_LOCK_TURNS = 360
#: Characters of the program's last words in an error.
_WORDS_MAX = 2_000
#: The files that make a folder a part of a sweep: its journal, and one of the manifests.
_JOURNAL, _MANIFESTS = "journal.jsonl", ("sweep.json", "sweep.partial.json")

#: The files of a part by their names.
Files = dict[str, bytes]


@dataclass(frozen=True)
class Task:
    """What all tasks of a sweep share."""

    #: Of `kumiki replay sweep`: everything but the strategy, the data, the points, the rows and the folder.
    arguments: tuple[str, ...]
    #: The name of a built-in strategy, or of a component's file.
    strategy: str
    component: bytes | None
    points: bytes | None
    #: The data folder where every node sees it, or the SHA-256 of what is shipped.
    data: str
    is_shipped: bool
    program: str | None
    node_dir: str | None
    jobs: int


@dataclass(frozen=True)
class Made:
    """What a task gives back."""

    files: Files
    #: The node that made it, as Ray names it.
    node: str
    #: Why there is nothing; the same task would fail again.
    error: str = ""
    code: str = "error"


def packed(folder: pathlib.Path) -> bytes:
    """The files of a data folder as one archive; the same files give the same bytes.

    Raises KumikiError where they are too many bytes.
    """
    files = sorted(path for path in folder.iterdir() if path.is_file())
    total = sum(path.stat().st_size for path in files)
    if total > SHIPPED_BYTES_MAX:
        text = f"data: {folder} has {total} bytes, at most {SHIPPED_BYTES_MAX} are shipped"
        raise KumikiError(f"{text}; put it where every node sees it and give shared=True", code="validation_error")
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        for path in files:
            about = tarfile.TarInfo(path.name)
            with path.open("rb") as file:
                about.size = os.fstat(file.fileno()).st_size
                tar.addfile(about, file)
    return archive.getvalue()


def run(task: Task, rows: str | None, journal: bytes | None, node: str, fetch: Callable[[], bytes]) -> Made:
    """Makes a part: the rows `FIRST..END`, or what is missing of the sweep that `journal` begins."""
    try:
        return Made(_run(task, rows, journal, fetch), node)
    except KumikiError as error:
        return Made({}, node, str(error), error.code)
    except OSError as error:
        # The disk of this node, or its program; Ray tells which node it was.
        return Made({}, node, f"{type(error).__name__}: {error}", "node_failed")


def _run(task: Task, rows: str | None, journal: bytes | None, fetch: Callable[[], bytes]) -> Files:
    root = _root(task.node_dir)
    data = str(unpacked(root, task.data, fetch)) if task.is_shipped else task.data
    if not os.path.isdir(data):
        text = f"data: {data} is not a folder on this node; give a shared folder, or leave out shared=True"
        raise KumikiError(text, code="data_not_found")
    with _folder(root, "part-") as folder:
        strategy = task.strategy
        if task.component is not None:
            (folder / "strategy").mkdir()
            (folder / "strategy" / task.strategy).write_bytes(task.component)
            strategy = str(folder / "strategy" / task.strategy)
        out = folder / "out"
        if journal is not None:
            out.mkdir()
            (out / _JOURNAL).write_bytes(journal)
        command = [_program.find(task.program), "replay", "sweep", strategy, "--data", data, *task.arguments,
                   "--out", str(out), "--jobs", str(task.jobs), "--quiet", "--format", "json"]
        if task.points is not None:
            (folder / "points").write_bytes(task.points)
            command += ["--points", str(folder / "points")]
        if rows is not None:
            command += ["--rows", rows, "--unverified"]
        said = call(command)
        made = [path for path in (out / name for name in _MANIFESTS) if path.is_file()]
        # 3: all failed; 4: all saw the future. Both are whole sweeps with a table.
        if said.returncode not in (0, 3, 4) or not made:
            code = "strategy_fault" if said.returncode == 3 else "sweep_failed"
            raise KumikiError(f"`kumiki replay sweep` ended with {said.returncode}: {last_words(said)}", code=code)
        return {path.name: path.read_bytes() for path in (out / _JOURNAL, made[0])}


@contextlib.contextmanager
def _folder(root: pathlib.Path, prefix: str) -> Iterator[pathlib.Path]:
    """A folder of a task, which is gone when the task is done with it or cancelled."""
    folder = None
    try:
        with _uninterrupted():
            folder = pathlib.Path(tempfile.mkdtemp(prefix=prefix, dir=root))
        yield folder
    finally:
        if folder is not None:
            with _uninterrupted():
                shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def _uninterrupted() -> Iterator[None]:
    """Holds a KeyboardInterrupt back until its end: Ray cancels a task by one, at whatever it is."""
    if threading.current_thread() is not threading.main_thread():
        # No interrupt comes here.
        yield
        return
    held: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _: held.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if held:
            raise KeyboardInterrupt


def call(command: list[str], cwd: pathlib.Path | None = None) -> subprocess.CompletedProcess[bytes]:
    """Runs the program to its end; it ends too where the waiting for it does."""
    process = None
    try:
        with _uninterrupted():
            process = subprocess.Popen(
                command, cwd=cwd, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE
            )
        out, errors = process.communicate()
    except BaseException:
        if process is not None:
            with _uninterrupted():
                process.kill()
                process.wait()
        raise
    return subprocess.CompletedProcess(command, process.returncode, out, errors)


def last_words(said: subprocess.CompletedProcess[bytes]) -> str:
    """The end of what a program said."""
    text = said.stderr.decode("utf-8", "replace").strip() or "it said nothing"
    return text[-_WORDS_MAX:]


def unpacked(root: pathlib.Path, digest: str, fetch: Callable[[], bytes]) -> pathlib.Path:
    """The folder with the data of this SHA-256, which is unpacked once, whoever else wants it meanwhile.

    Raises KumikiError where what was fetched is something else.
    """
    place = root / f"data-{digest}"
    with _locked(root / "lock"):
        if not place.is_dir():
            archive = fetch()
            found = hashlib.sha256(archive).hexdigest()
            if found != digest:
                raise KumikiError(f"data: the received archive has the SHA-256 {found}, not {digest}",
                code="data_unreadable")
            with _folder(root, "unpack-") as aside, tarfile.open(fileobj=io.BytesIO(archive)) as tar:
                for about in tar:
                    inside = tar.extractfile(about)
                    # Names of files only, as `packed` writes them.
                    if inside is None or os.path.basename(about.name) != about.name:
                        raise KumikiError(f"data: {about.name} is no file of a data folder", code="data_unreadable")
                    with inside, (aside / about.name).open("wb") as file:
                        shutil.copyfileobj(inside, file)
                aside.rename(place)
        os.utime(place)
        _tidy(root)
    return place


def _root(node_dir: str | None) -> pathlib.Path:
    """The folder of this user on this node."""
    if sys.platform == "win32":
        user = getpass.getuser()
    else:
        user = str(os.getuid())
    root = pathlib.Path(node_dir or os.path.join(tempfile.gettempdir(), f"kumiki-ray-{user}"))
    root.mkdir(mode=0o700, parents=True, exist_ok=True)
    if sys.platform != "win32":
        if root.stat().st_uid != os.getuid():
            text = f"node_dir: {root} belongs to another user; name a folder of your own"
            raise KumikiError(text, code="validation_error")
    return root


def _tidy(root: pathlib.Path) -> None:
    """Removes what tasks of lost nodes left, and data folders that nobody has used for long."""
    def age(path: pathlib.Path) -> float:
        try:
            return time.time() - path.stat().st_mtime
        except OSError:
            # Somebody else removed it.
            return 0.0

    data = sorted(root.glob("data-*"), key=age)[DATA_FOLDERS_KEPT:]
    for path in [*data, *root.glob("part-*"), *root.glob("unpack-*")]:
        if age(path) > _IN_USE_S:
            shutil.rmtree(path, ignore_errors=True)


@contextlib.contextmanager
def _locked(path: pathlib.Path) -> Iterator[None]:
    """Alone on this node: the others wait. The lock of a process that is killed is free."""
    with path.open("ab") as file:
        if sys.platform == "win32":
            import msvcrt

            for turn in range(_LOCK_TURNS):
                try:
                    msvcrt.locking(file.fileno(), msvcrt.LK_LOCK, 1)
                    break
                except OSError:
                    if turn + 1 == _LOCK_TURNS:
                        raise
        else:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX)
        yield
