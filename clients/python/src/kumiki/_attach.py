"""Where a running engine is, and what its clients have to know."""

from __future__ import annotations

import json
import logging
import os
import pathlib
import stat
import sys
from dataclasses import dataclass
from typing import Union
from urllib.parse import urlsplit

from kumiki import _arguments
from kumiki._program import Place
from kumiki.errors import AuthError, ConnectionLostError

#: What `attach` may be beside "auto" and None: a port, `127.0.0.1:PORT`, or the path of a session file.
Endpoint = Union[int, Place]

#: The variables with the token and the port of an engine that runs, and the port where none is told.
TOKEN_VARIABLE, PORT_VARIABLE, PORT = "KUMIKI_ENGINE_TOKEN", "KUMIKI_PORT", 19_876
#: The variable with the folder of its settings, and the file there that names it.
FOLDER_VARIABLE, SESSION_FILE = "KUMIKI_CONFIG_DIR", "engine-session.json"
#: Bytes of such a file at most, here and for the engine; its own have some two hundred.
SESSION_FILE_BYTES_MAX = 65_536
LOG = logging.getLogger("kumiki.engine")
_HERE = ("127.0.0.1", "localhost")


@dataclass(frozen=True)
class Door:
    """The port of an engine on this machine, and its token."""

    port: int
    token: str

    def __repr__(self) -> str:
        return f"Door(port={self.port})"


def system_folder(kind: str) -> pathlib.Path:
    """Where the system keeps the "config" or the "cache" of kumiki: the same folders as the program's."""
    home = pathlib.Path.home()
    variable, default = {
        "win32": {"config": ("APPDATA", "AppData/Roaming"), "cache": ("LOCALAPPDATA", "AppData/Local")},
        "darwin": {"config": ("", "Library/Application Support"), "cache": ("", "Library/Caches")},
    }.get(sys.platform, {"config": ("XDG_CONFIG_HOME", ".config"), "cache": ("XDG_CACHE_HOME", ".cache")})[kind]
    told = os.environ.get(variable, "") if variable else ""
    return (pathlib.Path(told) if os.path.isabs(told) else home / default) / "kumiki"


def config_folder() -> Place:
    """Where engines keep their settings: KUMIKI_CONFIG_DIR, else the system's folder, as for the program."""
    return os.environ.get(FOLDER_VARIABLE) or system_folder("config")


def wanted(attach: Endpoint | None) -> str | None:
    """What is to be attached to, as a text. Raises ValidationError."""
    if attach is None or isinstance(attach, (str, os.PathLike)):
        return _arguments.maybe_place("attach", attach)
    return str(_arguments.whole("attach", attach, '"auto", None, a port, 127.0.0.1:PORT or the path of a session file'))


def running(config_dir: Place) -> Door | None:
    """The engine whose session file is in a folder; None where there is no such file, or its process is gone. One
    that is no session file is left alone, which the log says."""
    try:
        return _of_file(os.path.join(os.fspath(config_dir), SESSION_FILE))
    except _NoEngine as why:
        if why.is_odd:
            LOG.warning("the session file is not used: %s", why)
        return None


def told(token: str | None) -> Door | None:
    """The engine whose token is given, or is that of KUMIKI_ENGINE_TOKEN, at the port of KUMIKI_PORT; None where no
    token is known, or the port is 0, which is any. Whether one runs there shows when it is connected to.

    Raises ValidationError where KUMIKI_PORT is no port.
    """
    token = _token(token)
    if token is None:
        return None
    text = os.environ.get(PORT_VARIABLE) or str(PORT)
    port = int(text) if text.isascii() and text.isdecimal() and len(text) <= 5 else -1
    if not 0 <= port < 65_536:
        raise _arguments.wrong(PORT_VARIABLE, text, "a port from 0 to 65,535; 0 is any")
    return Door(port, token) if port else None


def _token(given: str | None) -> str | None:
    """The token that is given, else that of KUMIKI_ENGINE_TOKEN."""
    return given or os.environ.get(TOKEN_VARIABLE) or None


def at(endpoint: str, config_dir: Place, token: str | None) -> Door:
    """The engine at an endpoint. Its token is the one that is given, that of KUMIKI_ENGINE_TOKEN, or that of the
    session file in `config_dir`, if the file is of that port.

    Raises ConnectionLostError where there is no engine, AuthError where there is no token.
    """
    is_file = os.path.basename(endpoint) == SESSION_FILE
    if is_file or os.path.exists(endpoint):
        path = os.path.join(endpoint, SESSION_FILE) if os.path.isdir(endpoint) and not is_file else endpoint
        try:
            return _of_file(path)
        except _NoEngine as why:
            raise ConnectionLostError(f"attach: {why}", code="no_engine") from None
    port = _port(endpoint)
    token = _token(token)
    if token is None:
        door = running(config_dir)
        if door is None or door.port != port:
            raise AuthError(
                f"attach: the token of the engine at port {port} is not known; give token= or {TOKEN_VARIABLE}, or the "
                f"path of its {SESSION_FILE}", code="auth_failed",
            )
        return door
    return Door(port, token)


def _port(text: str) -> int:
    """The port of `PORT`, `HOST:PORT` or `ws://HOST:PORT/`, where the host is this machine."""
    address = f"ws://127.0.0.1:{text}" if text.isdecimal() else text if "://" in text else f"ws://{text}"
    try:
        parts = urlsplit(address)
        fits = parts.scheme == "ws" and parts.hostname in _HERE and parts.path in ("", "/") and not parts.query
        if fits and parts.port:
            return parts.port
    except ValueError:
        pass
    raise _arguments.wrong("attach", text, "a file that is there, or an address of this machine like 127.0.0.1:19876")


class _NoEngine(Exception):
    """Why a session file leads to no engine. One that is odd is no session file at all."""

    def __init__(self, why: str, *, is_odd: bool = True) -> None:
        super().__init__(why)
        self.is_odd = is_odd


def _of_file(path: str) -> Door:
    """The engine of a session file. Raises _NoEngine."""
    try:
        fields = json.loads(_bytes_of(path))
    except FileNotFoundError:
        raise _NoEngine(f"there is no {path}; no engine runs with that folder", is_odd=False) from None
    except OSError as error:
        raise _NoEngine(f"{path} cannot be read: {error.strerror or error}") from None
    except (ValueError, RecursionError):
        raise _NoEngine(f"{path} is no session file: it holds no JSON object") from None
    if not isinstance(fields, dict):
        raise _NoEngine(f"{path} is no session file: it holds no JSON object")
    port, token, pid = fields.get("port"), fields.get("token"), fields.get("pid")
    for name, is_right, is_wanted in (
        ("port", type(port) is int and 0 < port < 65_536, "a port from 1 to 65,535"),
        ("token", isinstance(token, str) and token != "", "a text"),
        ("pid", type(pid) is int and pid > 0, "the number of a process"),
    ):
        if not is_right:
            # What is there instead may be a token in a wrong place.
            raise _NoEngine(f"{path} is no session file: its {name} is not {is_wanted}")
    assert isinstance(port, int) and isinstance(token, str) and isinstance(pid, int)
    if not _is_alive(pid):
        raise _NoEngine(f"the engine of {path} is gone: there is no process {pid}", is_odd=False)
    return Door(port, token)


def _bytes_of(path: str) -> bytes:
    """The bytes of a small file. Nothing else is read, because that may never end."""
    # A named pipe is opened at once then, whether somebody writes to it or not.
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise _NoEngine(f"{path} is no session file: it is no plain file")
        content, part = b"", b" "
        while part and len(content) <= SESSION_FILE_BYTES_MAX:
            part = os.read(handle, SESSION_FILE_BYTES_MAX + 1 - len(content))
            content += part
    finally:
        os.close(handle)
    if len(content) > SESSION_FILE_BYTES_MAX:
        raise _NoEngine(f"{path} is no session file: it has more than {SESSION_FILE_BYTES_MAX:,} bytes")
    return content


def _is_alive(pid: int) -> bool:
    if pid <= 0:
        return False
    if sys.platform == "win32":
        if pid >= 1 << 32:
            # No process of Windows has such a number.
            return False
        import ctypes

        kernel = ctypes.WinDLL("kernel32", use_last_error=True)
        # The right to wait for it, and what a wait of no time says of one that goes on.
        process = kernel.OpenProcess(0x0010_0000, False, pid)
        if not process:
            # Access is denied to one that is there, of somebody else.
            return ctypes.get_last_error() == 5
        try:
            return bool(kernel.WaitForSingleObject(process, 0) == 0x102)
        finally:
            kernel.CloseHandle(process)
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True
    except (OSError, OverflowError):
        return False
    return True
