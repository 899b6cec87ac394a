"""The Airflow DAG that releases one table, named when it is triggered:

    airflow dags trigger anonlib_release --conf '{"config": "people.yaml", "date": "2026-01-31"}'

A DAG of its own for each table, with a schedule, is as short: see `anonlib_airflow`.
"""

from anonlib_airflow import release_dag

dag = release_dag("anonlib_release")
