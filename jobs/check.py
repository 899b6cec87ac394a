"""Checks a config against its source and publishes nothing, with spark-submit:

    jars=$(python -m anonlib.spark.jars | paste -sd,)
    spark-submit --jars "$jars" jobs/check.py conf/adult.yaml

The arguments are those of `anonlib check`. spark-submit sets master, resources and jars; the
settings under `spark` in the config are added. Exit codes: 0 done, 2 config or input error, or the
privacy models can't hold on this table, 1 anything else.
"""

import sys

from anonlib.cli import main

if __name__ == "__main__":
    sys.exit(main(["check", *sys.argv[1:]]))
