# SPDX-License-Identifier: Apache-2.0
"""Runs a program that ends when its parent process ends. Arguments: PARENT PROGRAM ARGUMENTS...

PARENT is the parent's process id. This is a separate script, because Python code must not run
between fork and exec in a process with threads. Linux only.
"""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1  # <linux/prctl.h>


def main() -> None:
    parent, program = int(sys.argv[1]), sys.argv[2:]
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl")
    # The parent may have died before the call.
    if os.getppid() != parent:
        sys.exit(1)
    os.execv(program[0], program)


if __name__ == "__main__":
    main()
