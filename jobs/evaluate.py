"""Measures a release, published or on trial, with spark-submit:

    jars=$(python -m anonlib.spark.jars | paste -sd,)
    spark-submit --jars "$jars" jobs/evaluate.py conf/adult.yaml --trial

The arguments are those of `anonlib evaluate`. Exit codes: 0 done, 2 config or input error, 3 audit
failed, 4 gate failed, 1 anything else.
"""

import sys

from anonlib.cli import main

if __name__ == "__main__":
    sys.exit(main(["evaluate", *sys.argv[1:]]))
