"""`python -m kumiki`: the program with the same arguments."""

import os
import subprocess
import sys

from kumiki import program


def main() -> int:
    path = program()
    if sys.platform == "win32":
        return subprocess.run([path, *sys.argv[1:]]).returncode
    os.execv(path, [path, *sys.argv[1:]])
    return 1


if __name__ == "__main__":
    sys.exit(main())
