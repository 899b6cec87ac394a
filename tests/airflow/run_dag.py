"""One DAG run, in Airflow's own Python: what `airflow dags test` does, with a run id that can be
given again. Arguments: the DAG's file, when it runs, its conf as JSON, a pattern of tasks that are
done already."""

import json
import os
import sys
from datetime import datetime, timedelta
from importlib import import_module

sys.path.insert(0, os.environ["AIRFLOW__CORE__DAGS_FOLDER"])
name, moment, conf, done_already = sys.argv[1:]

dag = import_module(name).dag
for task in dag.tasks:
    task.retry_delay = timedelta(0)
when = datetime.fromisoformat(moment)
run = dag.test(
    run_after=when,
    logical_date=when,
    run_conf=json.loads(conf),
    mark_success_pattern=done_already or None,
)
sys.stdout.write(f"\n{run.run_id}\n")
