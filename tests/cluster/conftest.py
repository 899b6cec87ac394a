"""What tests of clusters share."""

import fcntl
import os
import shutil

import pytest

from tests.cluster.standalone import Packed, pack


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Packed:
    """What scripts/package makes: once for all processes of a run."""
    own = tmp_path_factory.getbasetemp()
    shared = own.parent if "PYTEST_XDIST_WORKER" in os.environ else own
    folder = shared / "packed"
    with (shared / "packed.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "whole").exists():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            pack(folder)
            (folder / "whole").touch()
    return Packed(folder / "dist", folder / "environment", folder / "troubled.zip")
