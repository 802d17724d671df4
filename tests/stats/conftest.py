from __future__ import annotations

from pathlib import Path

import pytest

from tests.stats.lake import Lake


@pytest.fixture
def files(tmp_path: Path) -> Lake:
    root = tmp_path / "a table, 100% ünï=1"
    root.mkdir()
    return Lake(root)
