"""``python -m kubetide``: the command line, where no script of it is installed."""

from kubetide.cli.main import main

main()
