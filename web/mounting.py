"""Puts the console into an application of Starlette or FastAPI."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

from redelivery.client.options import ConnectionKeywords
from redelivery.model.destinations import destination
from redelivery.model.errors import ConfigError
from redelivery.operate.letters.receipts.writer import state_folder
from redelivery.policies.brokers.policies import BrokerPolicies

if TYPE_CHECKING:
    from starlette.applications import Starlette  # or `import redelivery.web` would need it


def mount(
    app: Starlette,
    url: str | Iterable[str],
    *,
    path: str = "/redelivery",
    hosts: Iterable[str] = (),
    token: str | None = None,
    allow_writes: bool = False,
    config: BrokerPolicies | None = None,
    queues: Iterable[str] = (),
    receipts: str | Path | None = None,
    **options: Unpack[ConnectionKeywords],
) -> None:
    """Put the console into an application, below a path.

    Args:
        app: of Starlette, or of FastAPI.
        url: of a broker, or of several.
        path: where the console is.
        hosts: names by which your application is reached, beside ``localhost`` and 127.0.0.1; ``*``: any IP address.
            Requests by another name are refused. Who reaches the path sees all letters: have your own login before it,
            or give a token.
        token: what a browser has to give once, and a program as ``Authorization: Bearer``; 16 characters or more.
        allow_writes: letters may be replayed, edited, moved and deleted.
        config: what ``redelivery.policies.read(path)`` has read of the broker's configuration file.
        queues: that are looked at beside those that are found.
        receipts: the folder of receipts; None: where ``redelivery dlq`` has them.
        options: as `redelivery.connect`, for all brokers.

    Raises:
        ConfigError: there is no URL or no such transport, the path is not one, the token is too short, or ``app`` is
            no application (a router's mounts are lost when an application includes it).
        ModuleNotFoundError: the extra ``console`` is not installed.
    """
    try:
        from starlette.applications import Starlette

        from redelivery.web.application import console
    except ModuleNotFoundError as error:
        text = f"the console needs {error.name}: install the extra, redelivery[console]"
        raise ModuleNotFoundError(text, name=error.name) from error
    from redelivery.web.asked import ConsoleSettings
    from redelivery.web.guard import LOOPBACK
    from redelivery.web.sites import sites_of

    if not isinstance(app, Starlette):
        text = f"app must be an application of Starlette or FastAPI, and not {type(app).__name__}"
        raise ConfigError(text)
    if not path.startswith("/") or path.endswith("/"):
        raise ConfigError(f"path={path!r}: begin with a slash, and end without one, such as /redelivery")
    urls = (url,) if isinstance(url, str) else tuple(url)
    settings = ConsoleSettings(
        sites_of((each, options) for each in urls),
        *((state_folder() / "receipts", state_folder()) if receipts is None else (Path(receipts), Path(receipts))),
        config,
        tuple(map(destination, queues)),
        allow_writes,
    )
    app.mount(path, console(settings, hosts=(*LOOPBACK, *hosts), token=token))
