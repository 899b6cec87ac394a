"""Runs that are hurt at random moments, and looked at afterwards.

    scripts/faults [--seed N] [--tries N] [--minutes N] [--only KIND ...]

A try is a release of a small table, with a fault at a random moment: a process is killed, the
source changes, a disk is full, the clock jumps, a second driver comes. Afterwards, and again after
the same run was repeated, `tests/faults/checker.py` looks at what is on the disk. The first has
the given seed, the next has the next number; `--seed N --tries 1 --only KIND` repeats one. The
files of a try stay if the invariant does not hold, and the report says where.
Exit codes: 0 the invariant holds, 1 it does not.
"""

import argparse
import shutil
import sys
import tempfile
import time
from collections import Counter
from itertools import count
from pathlib import Path
from random import Random

from tests.faults.kinds import KINDS
from tests.faults.tries import Tries, Try


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=None, help="of the first try")
    parser.add_argument("--tries", type=int, default=None, help="the most tries")
    parser.add_argument("--minutes", type=float, default=10, help="none begins after these")
    parser.add_argument("--only", nargs="+", choices=[*KINDS], default=[*KINDS], metavar="KIND")
    args = parser.parse_args()
    first = Random().randrange(10**6) if args.seed is None else args.seed
    folder = Path(tempfile.mkdtemp(prefix="anonlib-faults-"))
    made = make(folder, first, args.tries, time.monotonic() + 60 * args.minutes, args.only)
    broken = [each for each in made if each.broken]
    for kind, n in sorted(Counter(each.kind for each in made).items()):
        print(f"{kind:9} {n:4} tries")
    print(f"{len(made)} tries from seed {first}, {len(broken)} broken")
    if broken:
        print(f"their files: {folder}")
    else:
        shutil.rmtree(folder)
    return 1 if broken else 0


def make(folder: Path, first: int, n: int | None, until: float, only: list[str]) -> list[Try]:
    """Makes tries, and tells of each."""
    tries, made = Tries(folder), list[Try]()
    try:
        for seed in count(first):
            if len(made) == n or time.monotonic() > until:
                return made
            made.append(tries.make(Random(f"kind {seed}").choice(only), seed))
            print(made[-1], flush=True)
    finally:
        tries.stop()
    raise AssertionError("seeds never end")


if __name__ == "__main__":
    sys.exit(main())
