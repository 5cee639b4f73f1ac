"""``python -m redelivery`` is the command ``redelivery``."""

from redelivery.cli.main import main

main()
