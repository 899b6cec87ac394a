"""The object store of the tests on it."""

from collections.abc import Iterator

import pytest

from tests.s3.store import Store, store


@pytest.fixture
def s3() -> Iterator[Store]:
    """An empty store that can lose requests, and stop."""
    with store() as found:
        yield found
