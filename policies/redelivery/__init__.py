"""ActiveMQ's redelivery: how often a message that failed is redelivered, and when.

| file | what it says |
|---|---|
| `policy` | RedeliveryPolicy: the limit, the delays, and what Java's `toString` says of them in causes |
| `map` | RedeliveryPolicyMap: which destination has which policy, and why that one |
| `back_off` | the arithmetic of delays, in whole milliseconds like Java's |
"""
