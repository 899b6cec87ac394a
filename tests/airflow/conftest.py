"""The Airflow of these tests: a real one, with a database and a folder of its own."""

from collections.abc import Iterator

import pytest

from tests.airflow.running import AIRFLOW, CONFIGS, Airflow, environment, web_hook


@pytest.fixture(scope="session")
def airflow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Airflow]:
    if not AIRFLOW.is_file():
        pytest.skip("no Airflow in .venv/airflow: `scripts/test --airflow` installs it")
    home = tmp_path_factory.mktemp("airflow")
    for folder in ("configs", "tables", "local"):
        (home / folder).mkdir()
    for name, text in CONFIGS.items():
        (home / f"configs/{name}.yaml").write_text(text)
    with web_hook() as (url, told):
        started = Airflow(home, home / "tables", told, environment(home, url))
        started.command("airflow", "db", "migrate")
        yield started
