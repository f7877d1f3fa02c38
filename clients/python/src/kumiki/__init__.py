"""Finds the `kumiki` program that this package brought along.

    import subprocess, kumiki
    subprocess.run([kumiki.program(), "strategy", "list"], check=True)
"""

import os
import sys
import sysconfig

__all__ = ["program"]


def program() -> str:
    """The program's path.

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
