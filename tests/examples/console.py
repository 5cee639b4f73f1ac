"""Runs the commands of a page's ``console`` block, and compares what they print with what the page says."""

from __future__ import annotations

import re
import shlex

from tests.examples.snippets import Block, shows
from tests.run.commands import CliRunner

from redelivery.cli.app import app

_COMMAND = re.compile(r"^\$ ", re.MULTILINE)


def check(block: Block, environment: dict[str, str]) -> None:
    """Each command of the block, in order; ``export`` adds to the environment of those that follow."""
    for each in _COMMAND.split(block.code)[1:]:
        command, *shown = each.rstrip("\n").split("\n")
        program, *arguments = shlex.split(command)
        if program == "export":
            environment.update(dict(argument.split("=", 1) for argument in arguments))
            continue
        assert program == "redelivery", f"{block.page}:{block.line}: {command!r} is no command that can be run here"
        done = CliRunner(env=environment).invoke(app, arguments)
        printed = [line for line in done.stdout.splitlines() if line]
        assert shows(shown, printed), f"{block.page}:{block.line}: $ {command}\n{done.output}"
