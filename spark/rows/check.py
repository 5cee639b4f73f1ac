"""Checks that columns are those that the options promise: of a segment that was written before, of a user's schema."""

from __future__ import annotations

from typing import Any, Protocol

from redelivery.model.errors import ConfigError
from redelivery.spark.rows.column_names import ERROR, PROPERTIES
from redelivery.spark.rows.schema import properties_arrow, struct_type


class _Columns(Protocol):
    """The options that decide about columns."""

    @property
    def properties_type(self) -> str:
        """``string`` or ``variant``."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The wanted ones."""


def check_schema(schema: Any, options: _Columns) -> None:
    """Refuse the schema of ``.schema(…)``: Spark would take the columns for the user's, whatever they hold.

    Raises:
        ConfigError: it is not the source's own.
    """
    own = struct_type(options.properties_type, getattr(options, "errors", False), options.columns)
    if schema.simpleString() != own.simpleString():
        raise ConfigError(
            ".schema(…) cannot be used with jms, whose columns are always the same: leave it out, and select what you "
            "want after load(), such as .selectExpr('string(body) AS body'), or before it by the option columns"
        )


def check_segment(reader: Any, name: str, options: _Columns) -> None:
    """Refuse a segment that was received with other columns than the query has now; ``name`` is shown in the error.

    Raises:
        ConfigError: it names the option that was changed.
    """
    until = "until the query has read what is pending (a run with trigger(availableNow=True)), then change it"
    found = reader.schema.field(PROPERTIES).type
    if found != properties_arrow(options.properties_type):
        before = "string" if found == properties_arrow("string") else "variant"
        raise ConfigError(
            f"{name} was received with propertiesType={before}, and the option says {options.properties_type}: go back "
            f"to {before} {until}"
        )
    errors = ERROR in reader.schema.names
    if errors != getattr(options, "errors", False):
        how, back = ("with", "it") if errors else ("without", "what it was")
        raise ConfigError(
            f"{name} was received {how} badMessages=permissive, which gives the rows a column {ERROR}: go back to "
            f"{back} {until}"
        )
