from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from shop.listeners import app


class Command(BaseCommand):
    help = "Handles messages until SIGTERM or Ctrl-C, then finishes those that it has."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--health-port", type=int, help="serves /live, /ready and /metrics")

    def handle(self, *args: Any, **options: Any) -> None:
        app.run(health_port=options["health_port"])
