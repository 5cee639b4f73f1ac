"""The password and the certificates of a connection, where they are files or in the environment.

They are read when a connection is made, in the process that makes it: so a file that is replaced is used from the next
connection on, and a password that stands there is in no plan, offset or segment.
"""

from __future__ import annotations

import os
import ssl
from pathlib import Path
from typing import Final

from redelivery.model.errors import ConfigError
from redelivery.spark.options.query import BrokerOptions

_LONGEST: Final = 65_536  # bytes of a password's file


def read_password(options: BrokerOptions) -> str | None:
    """The password. Raises ConfigError: its file or variable is not here."""
    if options.password_env is not None:
        found = os.environ.get(options.password_env)
        if found is None:
            raise ConfigError(
                f"passwordEnv={options.password_env!r}: this process has no such variable; set it for the driver, by "
                f"spark.executorEnv.{options.password_env} for executors"
            )
        return found
    if options.password_file is None:
        return options.password
    path = _file("passwordFile", options.password_file)
    try:
        with path.open("rb") as file:
            content = file.read(_LONGEST + 1)
    except OSError as error:
        raise ConfigError(f"passwordFile={str(path)!r} cannot be read: {error.strerror}") from error
    try:
        text = content.decode()
    except UnicodeDecodeError:
        text = "\0"
    text = text.removesuffix("\n").removesuffix("\r")
    if len(content) > _LONGEST or "\0" in text or "\n" in text:
        raise ConfigError(f"passwordFile={str(path)!r} (not shown) is not one line of UTF-8: write the password alone")
    return text


def tls_context(options: BrokerOptions) -> ssl.SSLContext | None:
    """An SSLContext with these certificates, which verifies; None: the system's. Raises ConfigError."""
    if options.tls_ca is None and options.tls_cert is None:
        return None
    ca = None if options.tls_ca is None else _file("tlsCa", options.tls_ca)
    try:
        context = ssl.create_default_context(cafile=ca)
    except OSError as error:
        raise ConfigError(f"tlsCa={str(ca)!r} has no certificates (PEM) that can be read: {error}") from error
    if options.tls_cert is not None:
        cert = _file("tlsCert", options.tls_cert)
        key = None if options.tls_key is None else _file("tlsKey", options.tls_key)
        try:
            context.load_cert_chain(cert, key, lambda: "")  # an empty pass phrase: nobody is there to type one
        except OSError as error:
            files = f"tlsCert={str(cert)!r}" + ("" if key is None else f", tlsKey={str(key)!r}")
            raise ConfigError(f"{files}: no certificate with its key (PEM, without a pass phrase): {error}") from error
    return context


def _file(name: str, given: str) -> Path:
    """A path that is the same on all hosts, or the name of a file that Spark has brought.

    Raises:
        ConfigError: it is not on this host.
    """
    path = Path(given)
    if not path.is_absolute():
        from pyspark import SparkFiles

        root = getattr(SparkFiles, "_root_directory", None)  # of a worker; `get` needs a session elsewhere
        path = Path(root, given) if root else path
    if not path.is_file():
        raise ConfigError(
            f"{name}={given!r}: there is no file {path} on this host; give a path that is the same on driver and "
            "executors, or the name of a file that was sent with spark.files, --files or addFile"
        )
    return path
