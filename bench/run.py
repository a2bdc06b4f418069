"""Measure mcpclient against raw pipes and the official SDK: `python bench/run.py [--quick]`."""

import os
import sys

if __name__ == "__main__":
    # As a script's, the path begins with this folder; the package `bench` needs the one above.
    sys.path[0] = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

    from bench.command import main

    sys.exit(main(sys.argv[1:]))
