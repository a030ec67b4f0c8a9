"""`python -m faena`: the command line."""

import sys

if __name__ == "__main__":
    try:
        from faena.cli import main

        code = main()
    except KeyboardInterrupt:  # during the import
        code = 130
    sys.exit(code)
