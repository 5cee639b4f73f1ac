"""Names of the standard library that not every system has, and where the product uses them without a guard.

From the notes on availability in Python's documentation. A use is guarded by a test of `sys.platform` or `hasattr`
around it or before it in its function, or by a handler of the error that it would be.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

MODULES = {"curses", "fcntl", "grp", "posix", "pty", "pwd", "readline", "resource", "syslog", "termios", "tty"}
POSIX = {
    "os": """
    chown chroot confstr ctermid fchown fdatasync fork forkpty fpathconf fstatvfs getegid geteuid getgid getgroups
    getloadavg getpgid getpgrp getpriority getsid getuid getxattr initgroups killpg lchown lockf major makedev minor
    mkfifo mknod nice openpty pathconf pipe2 posix_fadvise posix_fallocate posix_spawn posix_spawnp pread preadv
    pwrite pwritev register_at_fork sched_getaffinity sched_setaffinity sched_yield sendfile setegid seteuid setgid
    setgroups setpgid setpriority setsid setuid statvfs sync sysconf tcgetpgrp tcsetpgrp ttyname uname wait wait3
    wait4 waitid waitpid eventfd memfd_create pidfd_open O_CLOEXEC O_DIRECTORY O_DSYNC O_NOCTTY O_NOFOLLOW
    O_NONBLOCK O_PATH O_SYNC O_TMPFILE WNOHANG WEXITSTATUS WIFEXITED WIFSIGNALED WTERMSIG
    """,
    "signal": """
    SIGALRM SIGCHLD SIGCONT SIGHUP SIGKILL SIGPIPE SIGPROF SIGQUIT SIGRTMIN SIGRTMAX SIGSTOP SIGTSTP SIGTTIN SIGTTOU
    SIGUSR1 SIGUSR2 SIGVTALRM SIGWINCH alarm getitimer pause pthread_kill pthread_sigmask setitimer siginterrupt
    sigpending sigtimedwait sigwait sigwaitinfo
    """,
    "select": "devpoll epoll kqueue poll POLLERR POLLHUP POLLIN POLLNVAL POLLOUT POLLPRI POLLRDHUP",
    "socket": """
    AF_NETLINK AF_PACKET AF_UNIX CMSG_LEN CMSG_SPACE MSG_DONTWAIT MSG_ERRQUEUE MSG_NOSIGNAL SCM_RIGHTS
    SO_BINDTODEVICE SO_PEERCRED SO_REUSEPORT TCP_CORK TCP_DEFER_ACCEPT TCP_QUICKACK TCP_USER_TIMEOUT sethostname
    """,
    "time": "CLOCK_BOOTTIME CLOCK_MONOTONIC CLOCK_REALTIME clock_getres clock_gettime clock_gettime_ns tzset",
    "asyncio": "create_unix_connection create_unix_server open_unix_connection start_unix_server",
}
LINUX = {
    "os": """
    eventfd fdatasync getxattr memfd_create pidfd_open pipe2 posix_fadvise posix_fallocate sched_getaffinity
    sched_setaffinity O_PATH O_TMPFILE
    """,
    "signal": "SIGRTMAX SIGRTMIN sigtimedwait sigwaitinfo",
    "select": "epoll POLLRDHUP",
    "socket": """
    AF_NETLINK AF_PACKET MSG_ERRQUEUE MSG_NOSIGNAL SO_BINDTODEVICE SO_PEERCRED TCP_CORK TCP_DEFER_ACCEPT
    TCP_QUICKACK TCP_USER_TIMEOUT
    """,
    "fcntl": "F_ADD_SEALS F_OFD_GETLK F_OFD_SETLK F_OFD_SETLKW F_SETPIPE_SZ",
    "resource": "prlimit",
    "time": "CLOCK_BOOTTIME",
}
KEYWORDS = {"preexec_fn"}  # of subprocess.Popen: Windows refuses it, and ignores the others of POSIX
PLACES = ("/proc/", "/sys/", "/dev/shm")  # noqa: S108  # Linux's, looked for in sources
OTHERS = (*MODULES, *KEYWORDS, "add_signal_handler")
HANDLED = {
    "ImportError",
    "ModuleNotFoundError",
    "AttributeError",
    "NotImplementedError",
    "OSError",
    "FileNotFoundError",
}


def uses(source: str, *, linux_only: bool = False) -> Iterator[tuple[int, str]]:
    """Line and name of each use that nothing guards."""
    lacking = LINUX if linux_only else POSIX
    names = {f"{module}.{name}" for module, each in lacking.items() for name in each.split()}
    imports = {f"from {module} import" for module in lacking}
    if not any(each in source for each in (*names, *imports, *((*PLACES, "prctl") if linux_only else OTHERS))):
        return  # the first look is the cheap one
    yield from _walk(ast.parse(source), names, linux_only, guarded=False)


def _walk(node: ast.AST, names: set[str], linux_only: bool, *, guarded: bool) -> Iterator[tuple[int, str]]:
    if not guarded:
        yield from ((getattr(node, "lineno", 0), name) for name in _named(node, names, linux_only))
    if isinstance(node, ast.If | ast.IfExp | ast.BoolOp) and _asks(node):
        guarded = True
    if isinstance(node, ast.With) and any("suppress" in ast.unparse(each) for each in node.items):
        guarded = guarded or bool(HANDLED & {each.id for each in ast.walk(node.items[0]) if isinstance(each, ast.Name)})
    for field, value in ast.iter_fields(node):
        children = value if isinstance(value, list) else [value]
        inside = guarded or (isinstance(node, ast.Try) and field == "body" and _handles(node))
        for child in children:
            if isinstance(child, ast.AST):
                yield from _walk(child, names, linux_only, guarded=inside)
            if field == "body" and isinstance(child, ast.Assert | ast.If) and _asks(child):
                inside = True  # for what follows it


def _named(node: ast.AST, names: set[str], linux_only: bool) -> Iterator[str]:
    match node:
        case ast.Attribute(value=ast.Name(id=module), attr=name) if f"{module}.{name}" in names:
            yield f"{module}.{name}"
        case ast.Attribute(attr="add_signal_handler" as name) if not linux_only:
            yield f"loop.{name}"
        case ast.Import(names=found) if not linux_only:
            yield from (each.name for each in found if each.name in MODULES)
        case ast.ImportFrom(module=str(module), names=found):
            yield from (f"{module}.{each.name}" for each in found if f"{module}.{each.name}" in names)
            if not linux_only and module in MODULES:
                yield module
        case ast.keyword(arg=str(name)) if not linux_only and name in KEYWORDS:
            yield f"Popen({name}=)"
        case ast.Constant(value=str(text)) if linux_only and text.startswith(PLACES):
            yield text
        case ast.Attribute(attr="prctl") if linux_only:
            yield "prctl"


def _asks(node: ast.If | ast.IfExp | ast.BoolOp | ast.Assert) -> bool:
    test = node if isinstance(node, ast.BoolOp) else node.test
    text = ast.unparse(test)
    return any(each in text for each in ("sys.platform", "hasattr(", "os.name", ".exists()", ".is_dir()"))


def _handles(node: ast.Try) -> bool:
    return any(
        each.type is not None and HANDLED & {name.id for name in ast.walk(each.type) if isinstance(name, ast.Name)}
        for each in node.handlers
    )
