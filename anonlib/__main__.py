"""`python -m anonlib`."""

import sys

from anonlib.cli import main

sys.exit(main())
