"""`python -m talekeeper`."""

from talekeeper.cli import main

main()
