"""Audits a published table, with spark-submit:

    jars=$(python -m anonlib.spark.jars | paste -sd,)
    spark-submit --jars "$jars" jobs/audit.py out/adult --conf conf/adult.yaml

The arguments are those of `anonlib audit`. spark-submit sets master, resources and jars; the
settings under `spark` in the config are added. spark-submit makes one stream of stdout and stderr:
with `--format junit` or `json` no progress is written, and an error comes in place of the report.
Exit codes: 0 done, 2 config or input error, 3 audit failed, 1 anything else.
"""

import sys

from anonlib.cli import main

if __name__ == "__main__":
    sys.exit(main(["audit", *sys.argv[1:]]))
