"""The command line of the fuzzer: see tools/fuzz/targets.py."""

import sys

from tools.fuzz.targets import main

sys.exit(main())
