"""How deliveries and messages travel: the seam, the protocols behind it, and what each broker means (floor 2)."""
