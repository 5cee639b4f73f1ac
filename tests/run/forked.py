"""Programs of ours as processes that are forked from one that has imported them: an eighth of the processor's time.

A `Forked` has the arguments, folder, environment, files and signals that a process of `subprocess` has, and ends as
that does. It has imported everything before, so a test of the start itself begins with a process of `subprocess`.
"""

from __future__ import annotations

import atexit
import gc
import json
import os
import select
import socket
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, AnyStr, Final

_ROOT: Final = Path(__file__).parents[2]
_SERVER: Final = "import sys; sys.path.insert(1, sys.argv[2]); from tests.run.forked import serve; exec(serve())"
# What a command imports when it needs it; each of them is another distribution's, too.
_LATE: Final = ("transports.stomp.adapter", "transports.amqp.adapter", "web.server", "web.application")


class Forked(subprocess.Popen[AnyStr]):
    """A process of ``(sys.executable, …, "-c", code, …)``; warnings are errors in it."""

    _ended: socket.socket

    def _execute_child(self, args: Sequence[str], *others: Any) -> None:
        """What `subprocess` calls to make the process, in place of fork and exec."""
        folder, environment, own_session = others[4], others[5], others[20]
        pipes: tuple[int, ...] = others[9:15]
        standard: tuple[int, ...] = (pipes[0], pipes[3], pipes[5])
        ours, theirs = socket.socketpair()
        with theirs:
            files = [theirs.fileno(), *(number if each == -1 else each for number, each in enumerate(standard))]
            socket.send_fds(_server(), [b"!"], files)
        where = os.fspath(folder or Path.cwd())
        variables = dict(os.environ if environment is None else environment)
        ours.sendall(json.dumps([args[args.index("-c") + 1 :], where, variables, own_session]).encode() + b"\n")
        self.pid = int(ours.recv(16))
        self._ended = ours
        self._child_created = True
        self._close_pipe_fds(*pipes)  # type: ignore[attr-defined]  # of those who wait for the exec

    def poll(self) -> int | None:
        return self._code(0)

    def wait(self, timeout: float | None = None) -> int:
        code = self._code(timeout)
        if code is None:
            raise subprocess.TimeoutExpired(self.args, timeout or 0)
        return code

    def _code(self, timeout: float | None) -> int | None:
        if self.returncode is None and select.select([self._ended], [], [], timeout)[0]:
            with self._waitpid_lock:  # type: ignore[attr-defined]  # its own of the same
                if self.returncode is None:
                    self.returncode = int(self._ended.recv(16))
                    self._ended.close()
        return self.returncode


def run(command: Sequence[str], *, timeout: float = 150, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run one to its end: `subprocess.run`, which captures what it writes."""
    with Forked[str](command, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options) as process:
        try:
            output, errors = process.communicate(timeout=timeout)
        finally:
            process.kill()
    return subprocess.CompletedProcess(command, process.returncode, output, errors)


@cache
def _server() -> socket.socket:
    """Where a process is asked for; it ends with ours."""
    ours, theirs = socket.socketpair()
    command = (sys.executable, "-W", "error", "-c", _SERVER, str(theirs.fileno()), str(_ROOT))
    with theirs:
        server = subprocess.Popen(command, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL)  # noqa: S603  # ours

    def end() -> None:
        ours.close()
        server.wait()

    atexit.register(end)
    return ours


def serve() -> str:
    """Fork a process for each that is asked for; it returns the code that is to be run, in each of these."""
    import typer.main
    from typer import testing

    from redelivery.cli.app import app

    for name in _LATE:
        with suppress(ModuleNotFoundError):
            import_module(f"redelivery.{name}")
    setattr(typer.main, "get_command", cache(typer.main.get_command))  # noqa: B010  # mypy: it has no such name
    for command in ("--help", "dlq ls q --url nowhere"):  # and what they import when they begin
        testing.CliRunner().invoke(app, command.split())
    gc.freeze()  # or each process would look at all of it at its end
    with socket.socket(fileno=int(sys.argv[1])) as asked:
        while True:
            word, files, _, _ = socket.recv_fds(asked, 1, 4)
            with suppress(ChildProcessError):
                while os.waitpid(-1, os.WNOHANG)[0]:  # those that have waited for one before
                    pass
            if not word:
                sys.exit()
            if not os.fork():
                break
            for each in files:
                os.close(each)
    return _begin(*files)


def _begin(ended: int, *files: int) -> str:
    """Fork the process, in one that waits for it and says how it ended."""
    with socket.socket(fileno=ended) as answers:
        with answers.makefile() as lines:
            wanted, folder, environment, own_session = json.loads(lines.readline())
        child = os.fork()
        if child:
            for each in files:
                os.close(each)
            answers.sendall(str(child).encode())
            answers.sendall(str(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])).encode())
            os._exit(0)
    for number, each in enumerate(files):
        os.dup2(each, number)
        os.close(each)
    if own_session:
        os.setsid()
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    code, *arguments = map(str, wanted)
    sys.argv = ["-c", *arguments]
    sys.path.remove(str(_ROOT))
    sys.stdout.reconfigure(line_buffering=os.isatty(1))  # type: ignore[union-attr]  # a text file
    return code
