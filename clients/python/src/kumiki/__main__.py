"""`python -m kumiki`: the program with the same arguments."""

import os
import signal
import subprocess
import sys

from kumiki import program


def main() -> int:
    path = program()
    if sys.platform == "win32":
        # Ctrl-C and Ctrl-Break are for the program: its end and its exit code are waited for.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGBREAK, signal.SIG_IGN)
        return subprocess.run([path, *sys.argv[1:]]).returncode
    os.execv(path, [path, *sys.argv[1:]])
    return 1


if __name__ == "__main__":
    sys.exit(main())
