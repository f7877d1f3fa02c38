"""Where the `kumiki` program is."""

from __future__ import annotations

import os
import shutil
import sys
import sysconfig
from typing import Union

from kumiki.errors import ProgramNotFoundError

__all__ = ["Place", "find", "program"]

#: A path in whatever form.
Place = Union[str, "os.PathLike[str]"]


def program() -> str:
    """The path of the program that this package brought along.

    Raises FileNotFoundError where the installation has none.
    """
    name = "kumiki.exe" if sys.platform == "win32" else "kumiki"
    user = sysconfig.get_preferred_scheme("user") if sys.version_info >= (3, 10) else None
    folders = [sysconfig.get_path("scripts")]
    if user is not None:
        folders.append(sysconfig.get_path("scripts", scheme=user))
    # Beside the interpreter, as in an environment that was moved.
    folders.append(os.path.dirname(sys.executable))
    for folder in folders:
        path = os.path.join(folder, name)
        if os.path.isfile(path):
            return path
    raise FileNotFoundError(f"there is no {name} in " + ", ".join(folders))


def find(asked: Place | None = None) -> str:
    """The program to start: the one that is asked for, that of KUMIKI_PROGRAM, the one beside the package, or
    the first on the PATH. One that is named must be there.

    Raises ProgramNotFoundError.
    """
    for what, named in (("program", asked), ("KUMIKI_PROGRAM", os.environ.get("KUMIKI_PROGRAM"))):
        if named:
            path = shutil.which(os.fspath(named))
            if path is None:
                raise ProgramNotFoundError(f"{what}: {os.fspath(named)} is no program")
            return os.path.abspath(path)
    try:
        return program()
    except FileNotFoundError as error:
        path = shutil.which("kumiki")
        if path is None:
            text = f"{error}, and none on the PATH; name it with program= or KUMIKI_PROGRAM"
            raise ProgramNotFoundError(text) from None
        return path
