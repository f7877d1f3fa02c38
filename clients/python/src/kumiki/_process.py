"""An engine in its own process, which ends with its session."""

from __future__ import annotations

import asyncio
import collections
import json
import logging
import os
import secrets
import shutil
import subprocess
import sys
import tempfile
import threading
import weakref
from typing import Any, Callable, TypeVar

from kumiki import _arguments, _program
from kumiki._attach import Door, system_folder
from kumiki._program import Place
from kumiki.errors import EngineStartError, EngineTimeoutError

T = TypeVar("T")
#: What the engine says goes here.
LOG = logging.getLogger("kumiki.engine")
#: The engine ends within 5 s when its input closes.
_END_TIME = 10.0
#: Lines of what it said that are kept for a start that fails.
_LINES_KEPT = 20
_LEVELS = ("off", "error", "warn", "info", "debug", "trace")


def engine_level(asked: str) -> str:
    """How much the engine logs, in its words. Raises ValidationError."""
    wanted = "off, error, warning, info or debug"
    level = _arguments.text("log_level", asked, wanted).lower()
    level = {"warning": "warn", "critical": "error"}.get(level, level)
    if level not in _LEVELS:
        raise _arguments.wrong("log_level", asked, wanted)
    return level


class Process:
    """A running `kumiki serve`. It ends when this process does, because its standard input closes then."""

    def __init__(self, process: subprocess.Popen[bytes], folder: str | None) -> None:
        self._process = process
        self._remove_folder = weakref.finalize(self, _remove, folder)
        self._said: collections.deque[tuple[int, str]] = collections.deque(maxlen=_LINES_KEPT)
        self._log = threading.Thread(target=self._read_log, name="kumiki-engine-log", daemon=True)
        self._log.start()

    @classmethod
    async def start(
        cls, *, mode: str, data: Place | None, config_dir: Place | None, cache_dir: Place | None, program: Place | None,
        log_level: str, timeout: float,
    ) -> tuple[Process, Door]:
        """Starts one and waits until it can be reached.

        Raises ProgramNotFoundError, EngineStartError, or EngineTimeoutError where it takes longer than `timeout`
        seconds.
        """
        command = [_program.find(program), "serve", "--mode", mode, "--log", log_level, "--log-format", "json"]
        if data is not None:
            command += ["--data", os.fspath(data)]
        how: dict[str, Any] = {"start_new_session": True}
        if sys.platform == "win32":
            # Where this process has no console, no window of one opens.
            how = {"creationflags": subprocess.CREATE_NEW_PROCESS_GROUP | subprocess.CREATE_NO_WINDOW}
        # Its session file is for those who are told of the folder.
        folder = tempfile.mkdtemp(prefix="kumiki-session-") if config_dir is None else None
        token = secrets.token_hex(32)
        cache = cache_dir or os.environ.get("KUMIKI_CACHE") or system_folder("cache")
        line = {
            "port": 0, "token": token, "config_dir": os.path.abspath(folder or os.fspath(config_dir or "")),
            "cache_dir": os.path.abspath(cache), "dev_login_allowed": False,
        }
        pipe = subprocess.PIPE
        try:
            # In a group of its own: Ctrl-C is for this process, which ends the run and keeps its results.
            process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, **how)
        except OSError as error:
            _remove(folder)
            raise EngineStartError(f"{command[0]} cannot be started: {error}") from error
        engine = cls(process, folder)
        try:
            return engine, Door(await engine._listening(json.dumps(line), timeout), token)
        except BaseException:
            engine.kill()
            raise

    async def _listening(self, line: str, timeout: float) -> int:
        """Tells the engine what it needs, and gives its port."""
        def talk() -> bytes:
            stdin, stdout = self._process.stdin, self._process.stdout
            try:
                assert stdin is not None and stdout is not None
                stdin.write(line.encode() + b"\n")
                stdin.flush()
                return stdout.readline()
            except (OSError, ValueError):
                # It has ended, and says why on standard error.
                return b""

        try:
            answer = await asyncio.wait_for(_aside(talk), timeout)
        except asyncio.TimeoutError:
            raise EngineTimeoutError(f"the engine did not start within {timeout:g} s") from None
        try:
            return int(json.loads(answer)["listening"])
        except (ValueError, KeyError, TypeError):
            pass
        exit_code = await _aside(self._exit_code)
        await _aside(lambda: self._log.join(5.0))
        lines = list(self._said)
        errors = [text for level, text in lines if level >= logging.ERROR]
        said = (errors or [text for _, text in lines] or [f"it ended with {exit_code}"])[-1]
        raise EngineStartError(f"the engine did not start: {said}", exit_code=exit_code)

    def _exit_code(self) -> int | None:
        try:
            return self._process.wait(1.0)
        except subprocess.TimeoutExpired:
            return None

    def _read_log(self) -> None:
        assert self._process.stderr is not None
        with self._process.stderr as lines:
            for line in lines:
                level, text = _log_line(line.decode("utf-8", "replace").strip())
                self._said.append((level, text))
                LOG.log(level, "%s", text)

    async def close(self) -> None:
        """Ends it: a run is ended first, and its results are kept."""
        await _aside(self._close)

    def _close(self) -> None:
        process = self._process
        try:
            if process.stdin is not None:
                process.stdin.close()
        except OSError:
            # What was not written is of no use any more.
            pass
        try:
            process.wait(_END_TIME)
        except subprocess.TimeoutExpired:
            LOG.warning("the engine did not end in time; it is killed")
        self.kill()

    def kill(self) -> None:
        """Ends it at once."""
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
        self._log.join(1.0)
        for pipe in (self._process.stdin, self._process.stdout):
            try:
                if pipe is not None:
                    pipe.close()
            except OSError:
                pass
        self._remove_folder()

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid


async def _aside(work: Callable[[], T]) -> T:
    """Does what blocks on a thread of its own, which holds up nobody's end."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()

    def give(answer: T) -> None:
        if not done.done():
            done.set_result(answer)

    def run() -> None:
        answer = work()
        try:
            loop.call_soon_threadsafe(give, answer)
        except RuntimeError:
            # Nobody waits any more.
            pass

    threading.Thread(target=run, name="kumiki-engine", daemon=True).start()
    return await done


def _remove(folder: str | None) -> None:
    if folder is not None:
        shutil.rmtree(folder, ignore_errors=True)


def _log_line(line: str) -> tuple[int, str]:
    """The level and the words of a line of the engine's log."""
    try:
        fields = json.loads(line)
        level = {"ERROR": logging.ERROR, "WARN": logging.WARNING, "INFO": logging.INFO}.get(
            str(fields.pop("level", "")).upper(), logging.DEBUG
        )
        text = str(fields.pop("message", fields.pop("error", "")))
    except (ValueError, AttributeError):
        return logging.WARNING, line
    more = " ".join(f"{name}={value}" for name, value in fields.items() if name not in ("timestamp", "target"))
    return level, f"{text} {more}".strip()
