"""The Airflow of these tests: a real one, with a database and a folder of its own."""

from collections.abc import Iterator

import pytest

from tests.airflow.running import Airflow, installed


@pytest.fixture(scope="session")
def airflow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Airflow]:
    with installed(tmp_path_factory.mktemp("airflow")) as made:
        yield made
