"""The pipeline of a release as an Airflow DAG: check -> release -> audit -> notify.

This folder is a DAG bundle; or its files are copied to the top of the DAG folder (then set
ANONLIB_JOBS). A scheduled release is a file beside them:

    from anonlib_airflow import release_dag
    dag = release_dag("people_daily", schedule="@daily", config="people.yaml", date="{{ ds }}")

Workers need spark-submit on PATH, a Python that has anonlib (PYSPARK_PYTHON), the settings of
`anonlib_job`, and connections:

    spark_default    master and deploy mode
    anonlib_keys     optional; its extra, {"PSEUDONYM_KEY": "..."}, is added to the environment of
                     drivers that run on the worker: a place for secrets
    anonlib_notify   optional; a web hook (host: its URL; password: a bearer token) that gets
                     {"text": ...} when a release is through, or has failed

Keys are never arguments, rendered fields or XComs. Where the driver runs on the cluster, they are
given to it there (`key_file` of the config, spark.kubernetes.driver.secretKeyRef.*), the configs'
folder is there under the same path, and exit codes are read from what YARN or Kubernetes tells
spark-submit; one that is not told is tried again, which publishes nothing twice.

Logs of tasks have what jobs print, such as how many rows were suppressed: private, as records are.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import requests
from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk import (
    DAG,
    Asset,
    AssetAlias,
    BaseHook,
    BaseOperatorLink,
    Context,
    Param,
    chain,
    get_current_context,
    task,
)
from airflow.sdk.exceptions import (
    AirflowException,
    AirflowFailException,
    AirflowNotFoundException,
)
from airflow.sdk.log import mask_secret
from anonlib_job import CONFIG, DATE, RefusedError, as_uri, failure, job, run_id

#: The date that whoever triggers a DAG run names, or none.
ASKED = "{{ params.date or '' }}"
KEYS = "anonlib_keys"
NOTIFY = "anonlib_notify"
#: Whoever schedules on it hears of every table that is released and audited.
RELEASES = AssetAlias("anonlib_releases")


class ReportLink(BaseOperatorLink):
    """The button that leads from a task to the run's report."""

    name = "Report"

    def get_link(self, operator: Any, *, ti_key: Any) -> str:
        return operator.report_link


class AnonlibOperator(SparkSubmitOperator):
    """Submits one of anonlib's jobs. What a retry can't mend fails at once: a config or an input
    that is wrong, a failed audit, a gate that is not passed. A retry of the rest is safe: a run
    that is committed is done.

    config: a file of ANONLIB_CONFIGS; date: the partition, the config's ${ANONLIB_DATE}.
    """

    template_fields = (*SparkSubmitOperator.template_fields, "config", "date")
    operator_extra_links = (ReportLink(),)

    def __init__(self, *, verb: str, config: str, date: str, **submit: Any):
        super().__init__(name=f"anonlib {verb}", **submit)
        self.verb = verb
        self.config = config
        self.date = date
        self.report_link = ""

    def execute(self, context: Context) -> None:
        run = run_id(context["dag_run"].dag_id, context["dag_run"].run_id)
        try:
            wanted = job(self.verb, self.config, self.date, run, os.environ)
        except RefusedError as error:
            raise AirflowFailException(f"{self.verb}: {error}") from None
        self.application = wanted.application
        self.env_vars = {**(self.env_vars or {}), **wanted.environment}
        self.application_args = list(wanted.arguments)
        self.properties_file = wanted.properties_file
        if self.verb != "check":
            self.report_link = wanted.link
        with keys():
            self._submit(context)
        for alias in self.outlets:
            extra = {"run_id": run, "config": self.config, "report": wanted.report}
            context["outlet_events"][alias].add(Asset(as_uri(wanted.table)), extra=extra)

    def _submit(self, context: Context) -> None:
        try:
            super().execute(context)
        except (AirflowException, RuntimeError) as error:  # its text has the end of the job's log
            failed = failure(str(error))
            if failed.code is None:
                self.log.error("%s", error)
            kind = AirflowFailException if failed.final else AirflowException
            raise kind(f"{self.verb}: {failed.text}") from None


@contextmanager
def keys() -> Iterator[None]:
    """Puts the secrets of a connection into the environment that spark-submit inherits."""
    found = _connection(KEYS)
    secrets = {} if found is None else {k: str(v) for k, v in found.extra_dejson.items()}
    before = {name: os.environ.get(name) for name in secrets}
    for secret in secrets.values():
        mask_secret(secret)
    os.environ.update(secrets)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def tell(text: str) -> None:
    """Posts a text to the web hook, if there is one. Raises AirflowException where it refuses."""
    hook = _connection(NOTIFY)
    if hook is None:
        return
    headers = {"Authorization": f"Bearer {hook.password}"} if hook.password else {}
    try:
        answer = requests.post(hook.host, json={"text": text}, headers=headers, timeout=30)
        answer.raise_for_status()
    except requests.RequestException as error:  # its text shows the URL, which may be a secret
        raise AirflowException(f"{NOTIFY}: {type(error).__name__}") from None


@task
def notify() -> None:
    """Says that a run is through."""
    tell(f"{_named(get_current_context())}: released and audited.")


def tell_failure(context: Context) -> None:
    """Says which task of which run has failed, and why."""
    why = context.get("exception")
    text = f" {why}" if isinstance(why, AirflowException) else f"; {type(why).__name__}"
    tell(f"{_named(context)}: {context['ti'].task_id} failed.{text}")


def release_dag(
    dag_id: str,
    *,
    schedule: Any = None,
    config: str | None = None,
    date: str = ASKED,
    audit: bool = True,
    **submit: Any,
) -> DAG:
    """A DAG that releases what a config says, each of its runs once.

    Without `config`, whoever triggers the DAG names it; with it, nobody can name another. `date`
    is a template, such as `{{ ds }}`; only one that has `params.date` in it lets who triggers the
    DAG name the day: `{{ params.date or ds }}`. `audit=False` leaves out the audit of the published
    table (releases are audited before they are published): for a config with a `unit` that is no
    pseudonym in the table, where nobody can count persons. `submit` goes to all tasks: `retries`,
    `conn_id`, `deploy_mode`, `yarn_track_via_rm_api`, ...
    """
    # A driver that died on another host during its commit may keep its target for an hour. No retry
    # waits for that: a task that failed meanwhile can be cleared.
    usual = {"retries": 2, "retry_delay": timedelta(minutes=5), "durable": False}
    with DAG(
        dag_id,
        schedule=schedule,
        params={"config": _config_param(config), "date": _date_param(date)},
        catchup=False,
        max_active_runs=1,  # a target has one run at a time
        default_args={**usual, **submit, "on_failure_callback": tell_failure},
        doc_md=__doc__,
    ) as dag:
        asked = {"config": config or "{{ params.config }}", "date": date}
        *first, last = ("check", "release", "audit") if audit else ("check", "release")
        steps = [AnonlibOperator(task_id=verb, verb=verb, **asked) for verb in first]
        steps.append(AnonlibOperator(task_id=last, verb=last, outlets=[RELEASES], **asked))

        chain(*steps, notify())
    return dag


def _config_param(config: str | None) -> Param:
    text = {"type": "string", "pattern": CONFIG, "description": "a file of ANONLIB_CONFIGS"}
    return Param(**text) if config is None else Param(config, enum=[config], **text)


def _date_param(date: str) -> Param:
    """Declared even where nobody may name a date: Airflow takes what a DAG does not declare, so
    that whoever asked for a day would get another one."""
    if "params.date" in date:
        return Param(None, type=["null", "string"], pattern=DATE, description="the partition")
    return Param(None, type="null", description=f"not to be named: it is {date}")


def _named(context: Context) -> str:
    run = context["dag_run"]
    return f"{run.dag_id}, {context['params']['config']}, {run_id(run.dag_id, run.run_id)}"


def _connection(name: str) -> Any:
    try:
        return BaseHook.get_connection(name)
    except AirflowNotFoundException:
        return None
