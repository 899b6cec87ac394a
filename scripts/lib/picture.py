"""Makes the docs' picture anew: runs the quickstart and saves what it prints.

.venv/bin/python scripts/lib/picture.py
"""

import io
import re
import tempfile
from dataclasses import replace
from pathlib import Path

from rich.console import Console

import anonlib
from anonlib.cli.show.summaries import print_release
from anonlib.run.result import ReleaseResult

ROOT = Path(__file__).parents[2]
CONFIG = "conf/quickstart.yaml"


def draw_summary(result: ReleaseResult, path: Path, config: str) -> None:
    """Writes the summary of a release as an SVG picture."""
    recording = Console(
        file=io.StringIO(), record=True, width=88, force_terminal=True, highlight=False
    )
    print_release(result, config, to=recording)
    text = recording.export_svg(title=f"anonlib release {config}")
    # Pages that show it load no fonts from elsewhere.
    path.write_text(re.sub(r"@font-face \{.*?\}", "", text, flags=re.S), encoding="utf-8")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        result = anonlib.release(anonlib.load(ROOT / CONFIG, [f"release.path={folder}/quickstart"]))
    # The places of the config as it is, not of this run.
    places = {
        name: getattr(result, name).replace(f"file:{folder}", "out")
        for name in ("table", "manifest", "record", "report")
    }
    picture = ROOT / "docs/images/summary.svg"
    picture.parent.mkdir(exist_ok=True)
    draw_summary(replace(result, **places), picture, CONFIG)


if __name__ == "__main__":
    main()
