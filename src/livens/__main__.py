"""Run the command line by ``python -m livens``."""

from livens.cli import main

main()
