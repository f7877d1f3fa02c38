"""Where a running engine is, and what its clients have to know."""

from __future__ import annotations

import json
import os
import pathlib
import sys
from dataclasses import dataclass
from typing import Union
from urllib.parse import urlsplit

from kumiki._program import Place
from kumiki.errors import AuthError, ConnectionLostError

#: What `attach` may be beside "auto" and None: a port, `127.0.0.1:PORT`, or the path of a session file.
Endpoint = Union[int, Place]

#: The variable with the token of an endpoint.
TOKEN_VARIABLE = "KUMIKI_ENGINE_TOKEN"
SESSION_FILE = "engine-session.json"
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


def running(config_dir: Place) -> Door | None:
    """The engine whose session file is in a folder; None where there is no such file, or its process is gone."""
    return _of_file(pathlib.Path(config_dir) / SESSION_FILE)


def at(endpoint: Endpoint, config_dir: Place, token: str | None) -> Door:
    """The engine at an endpoint. Its token is the one that is given, that of KUMIKI_ENGINE_TOKEN, or that of the
    session file in `config_dir`, if the file is of that port.

    Raises ConnectionLostError where there is no engine, AuthError where there is no token.
    """
    text = str(endpoint) if isinstance(endpoint, int) else os.fspath(endpoint)
    path = pathlib.Path(text)
    if path.exists() or path.name == SESSION_FILE:
        door = running(path) if path.is_dir() else _of_file(path)
        if door is None:
            raise ConnectionLostError(f"attach: no engine runs that has written {path}")
        return door
    port = _port(text)
    token = token or os.environ.get(TOKEN_VARIABLE)
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
    raise ValueError(f"attach: {text!r} is neither a file nor an address of this machine like 127.0.0.1:19876")


def _of_file(path: pathlib.Path) -> Door | None:
    try:
        fields = json.loads(path.read_text(encoding="utf-8"))
        port, token, pid = fields["port"], fields["token"], fields["pid"]
    except (OSError, ValueError, KeyError, TypeError):
        # None there, or none that an engine has written.
        return None
    is_right = type(port) is int and type(pid) is int and isinstance(token, str)
    return Door(port, token) if is_right and _is_alive(pid) else None


def _is_alive(pid: int) -> bool:
    if pid <= 0:
        return False
    if sys.platform == "win32":
        import ctypes

        kernel = ctypes.windll.kernel32
        # The right to wait for it, and what a wait of no time says of one that goes on.
        process = kernel.OpenProcess(0x0010_0000, False, pid)
        if not process:
            return False
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
