"""Brokers from container images, through testcontainers, where a Docker daemon answers."""

from __future__ import annotations

import importlib
import importlib.util
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from redelivery.testing.brokers import BrokerSpec
from redelivery.testing.ports import NotStartedError, free_ports, wait_for_ports

START_SECONDS = 120.0


def missing() -> str | None:
    """What this machine lacks to run containers; None: nothing."""
    if importlib.util.find_spec("testcontainers") is None:
        return "testcontainers is not installed (pip install 'redelivery[testing]')"
    docker = _docker()
    try:
        client = docker.from_env(timeout=5)
    except docker.errors.DockerException:
        return "no Docker daemon answers"
    client.close()
    return None


def _docker() -> Any:
    return importlib.import_module("docker")  # comes with testcontainers; it has no types


class ContainerBroker:
    """One container with fixed ports of this machine, so that they are the same after a kill and a start."""

    def __init__(self, spec: BrokerSpec) -> None:
        from testcontainers.core.container import DockerContainer

        self.spec = spec
        self.host = "127.0.0.1"
        self.ports: Mapping[str, int] = free_ports(spec.container_ports)
        self._folder = tempfile.TemporaryDirectory(prefix=f"redelivery-{spec.name}-")
        self._container: Any = DockerContainer(spec.image)
        for protocol, port in spec.container_ports.items():
            self._container.with_bind_ports(port, self.ports[protocol])
        files = spec.configure(Path(self._folder.name), "0.0.0.0", spec.container_ports)  # noqa: S104  # inside the container
        for target, file in files.items():
            self._container.with_volume_mapping(str(file), target, "ro")
        self._created = False

    def start(self) -> None:
        """Start it and wait until it listens on every port.

        Raises:
            NotStartedError: there is no such image, it ended or did not listen in time; the text ends with its log.
        """
        docker = _docker()
        try:
            if self._created:
                self._container.get_wrapped_container().start()
            else:
                self._container.start()
                self._created = True
        except docker.errors.APIError as error:
            raise NotStartedError(f"no container of {self.spec.image}: {error.explanation or error}") from error
        try:
            wait_for_ports(self.host, self.ports, self._ended, START_SECONDS)
        except NotStartedError as error:
            tail = self._container.get_wrapped_container().logs(tail=20).decode(errors="replace")
            raise NotStartedError(f"{self.spec.image} did not start: {error}; its last words:\n{tail}") from None

    def kill(self) -> None:
        """kill -9, and wait until it is gone."""
        container = self._container.get_wrapped_container()
        container.kill()
        container.wait(timeout=30)

    def close(self) -> None:
        """Remove it."""
        if self._created:
            self._container.stop()
        self._folder.cleanup()

    def _ended(self, seconds: float) -> bool:
        import requests

        container = self._container.get_wrapped_container()
        try:
            container.wait(timeout=seconds)
        except requests.exceptions.RequestException:
            return False
        return True
