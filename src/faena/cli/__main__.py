"""`python -m faena.cli`."""

import sys

if __name__ == "__main__":
    try:
        from faena.cli import main

        code = main()
    except KeyboardInterrupt:  # while it is still being imported
        code = 130
    sys.exit(code)
