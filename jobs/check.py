"""Compares a config with its source and publishes nothing, under spark-submit:

    jars=$(python -m anonlib.spark.jars | paste -sd,)
    spark-submit --jars "$jars" jobs/check.py conf/adult.yaml

The arguments are those of `anonlib check`. Master, resources and jars are spark-submit's; what
the config says under `spark` is added. Exit codes: 0 done, 2 config or input error, or the models
can't hold on this table, 1 anything else.
"""

import sys

from anonlib.cli import main

if __name__ == "__main__":
    sys.exit(main(["check", *sys.argv[1:]]))
