"""STOMP 1.0 to 1.2 as ActiveMQ Classic speaks it.

`socket` turns bytes into frames and back, `session` executes the frames of one client and answers them,
`subscriptions` knows which delivery an ACK names, `messages` translates between frames and stored messages.
"""
