"""The pytest plug-in that comes with redelivery. It imports nothing but pytest until a fixture is used."""

from __future__ import annotations

pytest_plugins = ("redelivery.testing.fixtures",)
