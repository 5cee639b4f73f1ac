"""OpenTelemetry: spans and metrics of what sessions do, by the semantic conventions for messaging (1.44).

import redelivery

connection = redelivery.connect("vm://example", observer=redelivery.otel.observer())

It needs the extra ``otel``, which is OpenTelemetry's API; the application brings and configures the SDK.
`observer` says what is followed, `spans` and `metrics` what comes of it, `names` how things are called, and
`propagation` how a message carries the context of its sender.
"""

try:
    import opentelemetry.trace as _api
except ImportError as error:
    raise ImportError("redelivery.otel needs OpenTelemetry's API: from the clone: pip install '.[otel]'") from error

from redelivery.otel.observer import TelemetryObserver, observer
from redelivery.otel.propagation import context_of

del _api

__all__ = ["TelemetryObserver", "context_of", "observer"]
