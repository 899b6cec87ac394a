"""Verifies a published table, under spark-submit:

    spark-submit jobs/audit.py out/adult --conf conf/adult.yaml

The arguments are those of `anonlib audit`. The session is the one that spark-submit configures, so
Delta's jars and its two settings come with it, or from `spark.jars` and `spark.conf` in the config.
The exit code is the driver's: 0 done, 2 config or input error, 3 audit failed, 1 anything else.
"""

import sys

from anonlib.cli import main

if __name__ == "__main__":
    sys.exit(main(["audit", *sys.argv[1:]]))
