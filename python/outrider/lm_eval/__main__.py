# SPDX-License-Identifier: Apache-2.0
"""Runs the harness' command with the model "outrider" registered."""

import sys

from outrider import Error
from outrider.lm_eval import register


def main() -> None:
    try:
        register()
    except Error as error:
        sys.exit(f"outrider: {error}")
    from lm_eval.__main__ import cli_evaluate

    cli_evaluate()


if __name__ == "__main__":
    main()
