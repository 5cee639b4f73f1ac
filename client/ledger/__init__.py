"""client/ledger."""
