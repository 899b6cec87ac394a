"""Makes the docs' picture anew: runs the quickstart and saves what it prints.

.venv/bin/python scripts/lib/picture.py
"""

import re
import tempfile
from dataclasses import replace
from pathlib import Path

import anonlib
from anonlib.cli.show.summaries import summary_svg

root = Path(__file__).parents[2]
config = "conf/quickstart.yaml"
with tempfile.TemporaryDirectory() as folder:
    result = anonlib.release(anonlib.load(root / config, [f"release.path={folder}/quickstart"]))
    # The places of the config as it is, not of this run.
    places = {
        name: getattr(result, name).replace(f"file:{folder}", "out")
        for name in ("table", "manifest", "record", "report")
    }
    picture = root / "docs/images/summary.svg"
    picture.parent.mkdir(exist_ok=True)
    summary_svg(replace(result, **places), picture, config)
# Pages that show it load no fonts from elsewhere.
text = picture.read_text(encoding="utf-8")
picture.write_text(re.sub(r"@font-face \{.*?\}", "", text, flags=re.S), encoding="utf-8")
