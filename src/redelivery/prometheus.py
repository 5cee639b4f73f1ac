"""Numbers for Prometheus by prometheus-client: of connections, messages and listeners.

import prometheus_client
import redelivery
from redelivery.prometheus import PrometheusObserver

metrics = PrometheusObserver()
app = redelivery.App("stomp://localhost:61613", observer=metrics)
metrics.watch(app)
prometheus_client.start_http_server(9100)

It needs the extra ``prometheus``. `App.run` with ``health_port`` serves a page of its own, which needs no library.
"""

try:
    import prometheus_client as _library
except ImportError as error:
    raise ImportError(
        "redelivery.prometheus needs prometheus-client: from the clone: pip install '.[prometheus]'"
    ) from error

from redelivery.client.entry.prometheus import PrometheusObserver

del _library

__all__ = ["PrometheusObserver"]
