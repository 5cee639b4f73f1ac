"""Brokers from container images, through testcontainers, where a Docker daemon answers."""

from __future__ import annotations

import gc
import importlib
import importlib.util
import os
import tempfile
import warnings
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from threading import Lock
from typing import Any

from redelivery.testing.brokers.ports import NotStartedError, free_ports, not_started, wait_for_ports
from redelivery.testing.brokers.spec import BrokerSpec, Image, Site

START_SECONDS = 120.0
_EVERYWHERE = "0.0.0.0"  # noqa: S104  # inside the container
_IMAGE = "REDELIVERY_CONTAINER_IMAGE"
_DATA = Path("/var/lib/redelivery")
_ASKING = Lock()  # a warning is hidden in the whole process: two threads that do it at once undo each other's filter


def missing(spec: BrokerSpec) -> str | None:
    """The reason why this machine cannot run the broker in a container; None: it can."""
    if importlib.util.find_spec("testcontainers") is None:
        return "testcontainers is not installed (from the clone: pip install '.[testing]')"
    if not _docker_answers():
        return "no Docker daemon answers"
    return spec.source.missing(to_run=False) if _mounted(spec) else None


def image(spec: BrokerSpec) -> Image:
    """The image that is run: the broker's, or the one of ``REDELIVERY_CONTAINER_IMAGE``.

    That one has Java and rabbitmq-server, and every broker's own distribution runs in it: where no registry answers.
    """
    name = os.environ.get(_IMAGE)
    return replace(spec.image, name=name, files={}, has_broker=False) if name else spec.image


def _mounted(spec: BrokerSpec) -> bool:
    return spec.source.portable and not image(spec).has_broker


def _docker_answers() -> bool:
    with _ASKING:
        return _asked()


@cache
def _asked() -> bool:
    docker = _docker()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)  # the client leaves the socket of a vain attempt open
        try:
            client = docker.from_env(timeout=5)
        except docker.errors.DockerException:
            client = None
        gc.collect()
    if client is None:
        return False
    client.close()
    return True


def _docker() -> Any:
    return importlib.import_module("docker")  # comes with testcontainers; it has no types


class ContainerBroker:
    """One container with fixed ports of this machine, so that they are the same after a kill and a start.

    It sees the folder of the configuration under the path that it has here. The store is the container's own.
    """

    def __init__(self, spec: BrokerSpec) -> None:
        self.spec = spec
        self.host = "127.0.0.1"
        self.image = image(spec)
        self.ports: Mapping[str, int] = free_ports(spec.ports)
        self._folder = tempfile.TemporaryDirectory(prefix=f"redelivery-{spec.name}-", ignore_cleanup_errors=True)
        self._starts = 0
        self._container: Any = None

    def start(self) -> None:
        """Start it and wait until it listens on every port.

        Raises:
            AddressInUseError: another program has one of its ports.
            NotStartedError: there is no such image, it ended or did not listen in time; the text ends with its log.
        """
        docker = _docker()
        self._starts += 1
        try:
            if self._container is not None:
                self._container.get_wrapped_container().start()
            else:
                self._container = self._new()
                self._container.start()
        except docker.errors.APIError as error:
            said = str(error.explanation or error)
            raise not_started(f"no container of {self.image.name}: {said}", said) from error
        try:
            wait_for_ports(self.host, self.ports, self._ended, START_SECONDS, self._ready)
        except NotStartedError as error:
            said = self._output()
            tail = "\n".join(said.splitlines()[-20:])
            raise not_started(f"{self.image.name} did not start: {error}; its last words:\n{tail}", said) from None

    def kill(self) -> None:
        """kill -9, and wait until it is gone."""
        container = self._container.get_wrapped_container()
        container.kill()
        container.wait(timeout=30)

    def close(self) -> None:
        """Remove it."""
        if self._container is not None:
            self._container.stop()
        self._folder.cleanup()

    def _new(self) -> Any:
        from testcontainers.core.config import testcontainers_config
        from testcontainers.core.container import DockerContainer

        if os.environ.get(_IMAGE):
            testcontainers_config.ryuk_disabled = True  # it is an image as well, of the registry that is not there
        home = self.spec.source.fetch() if _mounted(self.spec) else Path("/")
        folder = Path(self._folder.name)
        folder.chmod(0o755)  # the image may use another user
        more = {name: port for port, name in enumerate(self.spec.more_ports, start=7000)}
        site = Site(home, folder, _DATA, _EVERYWHERE, {**self.spec.ports, **more})
        self.spec.configure(site)
        container = DockerContainer(self.image.name)
        for protocol, port in self.spec.ports.items():
            container.with_bind_ports(port, self.ports[protocol])
        if not self.image.has_broker:
            container.with_command(list(self.spec.command(site)))
        if _mounted(self.spec):
            container.with_volume_mapping(str(home), str(home), "ro")
        container.with_volume_mapping(str(folder), str(folder), "rw")
        for name, target in self.image.files.items():
            container.with_volume_mapping(str(folder / name), target, "ro")
        return container

    def _output(self) -> str:
        logs: bytes = self._container.get_wrapped_container().logs()
        return logs.decode(errors="replace")

    def _ready(self) -> bool:
        return self._output().count(self.spec.ready) >= self._starts

    def _ended(self, seconds: float) -> bool:
        import requests

        container = self._container.get_wrapped_container()
        try:
            container.wait(timeout=seconds)
        except requests.exceptions.RequestException:
            return False
        return True
