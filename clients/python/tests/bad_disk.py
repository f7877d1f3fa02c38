"""A disk that is slow, or full, for one process while a file exists. A library of a few lines of C stands before the
system's; it is about the folders of runs, and the full disk about the log of orders too."""

import functools
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

SOURCE = r"""
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
static int is_so(const char *variable) {
    const char *sign = getenv(variable);
    return sign && !access(sign, F_OK);
}
static int fails(int fd) {
    int slow = is_so("SLOW_DISK_WHILE"), full = is_so("FULL_DISK_WHILE");
    char link[64], path[4096];
    if (!slow && !full) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length <= 0) return 0;
    path[length] = 0;
    if (slow && strstr(path, "/runs/")) usleep(strstr(path, "journal-") ? 60000 : 1000);
    if (!full || !(strstr(path, "/runs/") || strstr(path, "web_broker_orders"))) return 0;
    errno = ENOSPC;
    return 1;
}
ssize_t write(int fd, const void *bytes, size_t count) {
    return fails(fd) ? -1 : syscall(SYS_write, fd, bytes, count);
}
int fsync(int fd) { return fails(fd) ? -1 : syscall(SYS_fsync, fd); }
int fdatasync(int fd) { return fails(fd) ? -1 : syscall(SYS_fdatasync, fd); }
"""


@functools.cache
def library():
    """The library; none where it cannot be made."""
    if sys.platform != "linux" or not shutil.which("cc"):
        return None
    folder = Path(tempfile.mkdtemp(prefix="kumiki-bad-disk-"))
    (folder / "disk.c").write_text(SOURCE, encoding="utf-8")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", "disk.so", "disk.c"], check=True, cwd=folder)
    return folder / "disk.so"


def bad_disk(slow, full):
    """The environment of a process whose disk is slow while the one file exists, and full while the other does; none
    where that cannot be."""
    made = library()
    if made is None:
        return {}
    return {"LD_PRELOAD": str(made), "SLOW_DISK_WHILE": str(slow), "FULL_DISK_WHILE": str(full)}
