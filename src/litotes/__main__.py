"""`python -m litotes`, which is also how torchrun starts a training."""

import sys

from litotes.cli.main import main

sys.exit(main())
