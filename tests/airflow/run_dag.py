"""One DAG run, in Airflow's own Python: what `airflow dags test` does, with a run id that can be
given again. Arguments: when it runs, its conf as JSON, a pattern of tasks that are done already."""

import json
import os
import sys
from datetime import datetime, timedelta

sys.path.insert(0, os.environ["AIRFLOW__CORE__DAGS_FOLDER"])

from anonlib_release import dag

for task in dag.tasks:
    task.retry_delay = timedelta(0)
when = datetime.fromisoformat(sys.argv[1])
run = dag.test(
    run_after=when,
    logical_date=when,
    run_conf=json.loads(sys.argv[2]),
    mark_success_pattern=sys.argv[3] or None,
)
sys.stdout.write(f"\n{run.run_id}\n")
