"""A driver in a process of its own: one run of the command line after the other, told on stdin as
JSON arrays of arguments. The exit code of each is appended to the file `codes`. Its clock differs
from the machine's by the seconds in the file `clock`.

    python -m tests.faults.child FOLDER SETTINGS
"""

import json
import sys
import time
from contextlib import suppress
from pathlib import Path

from anonlib import cli
from anonlib.spark.session import session
from tests.quick import quick


def main(folder: Path, settings: dict[str, str]) -> None:
    now, clock = time.time, folder / "clock"
    time.time = lambda: now() + float(clock.read_text())
    spark = session(quick(folder / "scratch") | settings)
    codes = folder / "codes"
    codes.touch()
    for line in sys.stdin:
        code = cli.main(json.loads(line))
        with codes.open("a") as file:
            file.write(f"{code}\n")
    with suppress(Exception):  # a test may have killed the JVM
        spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]), json.loads(sys.argv[2]))
