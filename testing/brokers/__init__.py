"""Real brokers for tests: found, started, killed and ended.

`real` is the way in: `running(name)` gives a `RealBroker`, from any provider.
`native` runs a broker's own distribution, `containers` an image; `ports` chooses where it listens.
`sources` fetches a distribution, `supervise` sees that no broker outlives its starter.
`spec` is the form that `specs/` fills in, a file a broker.
"""
