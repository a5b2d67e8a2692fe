"""``python -m kdump``."""

import sys

from kdump.cli import main

sys.exit(main())
