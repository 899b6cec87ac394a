"""Anonymizes, audits and publishes a table, with spark-submit:

    jars=$(python -m anonlib.spark.jars | paste -sd,)
    spark-submit --jars "$jars" jobs/release.py conf/adult.yaml --set release.mode=overwrite

On a cluster, with the environment from scripts/package:

    spark-submit --master spark://HOST:7077 --properties-file conf/spark/standalone.conf \\
        --archives dist/anonlib-0.1.0-environment.tar.gz#environment --jars "$jars" \\
        jobs/release.py conf/adult.yaml

The arguments are those of `anonlib release`. spark-submit sets master, resources and jars; the
settings under `spark` in the config are added. Exit codes: 0 done, 2 config or input error, 3 audit
failed, 4 gate failed, 1 anything else.
"""

import sys

from anonlib.cli import main

if __name__ == "__main__":
    sys.exit(main(["release", *sys.argv[1:]]))
