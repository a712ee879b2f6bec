"""Which kernels the slots of a benchmark use: compiled ones, where there are any, or those in numpy."""

import argparse
import os
from importlib.util import find_spec

from snapline.kernels import forms


def add_option(parser: argparse.ArgumentParser) -> None:
    """Let the caller choose with `--kernels`."""
    parser.add_argument(
        "--kernels",
        choices=("auto", "numpy"),
        default="auto",
        help="auto: compiled kernels, if there is numba; numpy: none",
    )


def choose(asked: argparse.Namespace) -> str:
    """Have all processes that are started from now on do so; say what that comes to, for a page."""
    if asked.kernels != "auto":
        os.environ[forms.VARIABLE] = asked.kernels
    compiled = forms.mode() != "numpy" and find_spec("numba") is not None
    return f"kernels: {'compiled' if compiled else 'numpy'}"
