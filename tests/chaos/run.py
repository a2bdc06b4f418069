"""The long chaos run, for `make chaos`: figures on stdout, 1 as exit code if anything is amiss.

python tests/chaos/run.py [--seconds 60] [--seed 1] [--backend asyncio | trio]
"""

from __future__ import annotations

import argparse
import logging
import random
import sys
import time
from pathlib import Path

import anyio

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent))

from tests.chaos.engine import Chaos, Plan


def main() -> int:
    """Run on one loop, or on both, half of the time each."""
    parser = argparse.ArgumentParser(description="chaos for mcpclient")
    parser.add_argument("--seconds", type=float, default=60.0, help="of all runs together")
    parser.add_argument("--seed", type=int, default=None, help="a random one if not given")
    parser.add_argument("--backend", choices=["asyncio", "trio"], action="append")
    asked = parser.parse_args()
    backends = asked.backend or ["asyncio", "trio"]
    seed = random.randrange(1_000_000) if asked.seed is None else asked.seed
    plan = Plan(seed=seed, seconds=asked.seconds / len(backends))
    logging.getLogger("mcpclient").addHandler(logging.NullHandler())  # thousands of warnings
    faults = 0
    for backend in backends:
        print(
            f"{backend}: {plan.servers} servers, {plan.callers} callers, "
            f"{plan.seconds:g} s, seed {seed}",
            flush=True,
        )
        begun = time.monotonic()
        figures = anyio.run(Chaos(plan).run, backend=backend)
        print(figures)
        print(f"took        {time.monotonic() - begun:.1f} s\n", flush=True)
        before, after = figures.memory
        if after > before * 1.1 + 8192:
            print(f"FAULT       memory grew from {before} kB to {after} kB")
            faults += 1
        faults += len(figures.faults)
    print("nothing amiss" if not faults else f"{faults} FAULTS; again with --seed {seed}")
    return min(faults, 1)


if __name__ == "__main__":
    sys.exit(main())
