"""What the tests on clusters share."""

import pytest

from tests.cluster.standalone import Packed, packed


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Packed:
    """What scripts/package makes."""
    return packed(tmp_path_factory.mktemp("packed"))
