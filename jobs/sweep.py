"""Releases every point of a sweep file in memory and measures it, with spark-submit:

    jars=$(python -m anonlib.spark.jars | paste -sd,)
    spark-submit --jars "$jars" jobs/sweep.py conf/papers/price.yaml --set seeds=3

The arguments are those of `anonlib sweep`. spark-submit sets master, resources and jars; the
settings under `spark` in the file are added. Exit codes: 0 done (points may have failed), 2 config
or input error, 1 anything else.
"""

import sys

from anonlib.cli import main

if __name__ == "__main__":
    sys.exit(main(["sweep", *sys.argv[1:]]))
