"""Lets `python -m tenure` be the command line."""

import sys

from tenure.cli import main

if __name__ == "__main__":
    sys.exit(main())
