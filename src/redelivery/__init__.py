"""JMS-style sessions whose redelivery means the same on every broker."""
