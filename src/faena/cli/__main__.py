"""`python -m faena.cli`."""

import sys

from faena.cli import main

if __name__ == "__main__":
    sys.exit(main())
