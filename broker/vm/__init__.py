"""``vm://name``: sessions on the embedded broker of this process, without a socket.

`transport` is the connection, `channel` one session's calls, `delivery` what it receives; `steps` says what a planned
fault does to a call.
"""

from redelivery.broker.vm.transport import VmTransport

__all__ = ["VmTransport"]
