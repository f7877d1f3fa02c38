"""A wall clock that is set for one process: Tokyo's sessions and midnights, whatever the time is. A library of
a few lines of C stands before the system's; where none can be made, the tests that need it are skipped."""

import datetime
import functools
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

JAPAN = datetime.timezone(datetime.timedelta(hours=9))
#: A Tuesday, and the day after it; the exchange is open on both.
TUESDAY = datetime.date(2026, 12, 1)
WEDNESDAY = TUESDAY + datetime.timedelta(days=1)
SOURCE = r"""
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t clock, struct timespec *time) {
    int failed = syscall(SYS_clock_gettime, clock, time);
    const char *seconds = getenv("SHIFTED_CLOCK_SECONDS");
    if (!failed && clock == CLOCK_REALTIME && seconds)
        time->tv_sec += atoll(seconds);
    return failed;
}
"""


@functools.cache
def library():
    compiler = shutil.which("cc")
    if not sys.platform.startswith("linux") or compiler is None:
        pytest.skip("only a C compiler on Linux makes what sets the clock")
    folder = Path(tempfile.mkdtemp(prefix="kumiki-shifted-clock-"))
    (folder / "clock.c").write_text(SOURCE, encoding="utf-8")
    made = folder / "clock.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-o", made, folder / "clock.c"], check=True)
    return made


def shifted_to(day, time):
    """The environment of a process for which it is that time of a day in Japan now."""
    wanted = datetime.datetime.combine(day, time, JAPAN)
    seconds = round((wanted - datetime.datetime.now(JAPAN)).total_seconds())
    return {"LD_PRELOAD": str(library()), "SHIFTED_CLOCK_SECONDS": str(seconds)}
