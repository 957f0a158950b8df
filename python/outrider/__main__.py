# SPDX-License-Identifier: Apache-2.0
"""`python -m outrider ...` and the console script `outrider`: both run the program."""

import sys

from ._outrider import Error
from .program import run


def main() -> None:
    try:
        run()
    except Error as error:
        sys.exit(f"outrider: {error}")


if __name__ == "__main__":
    main()
