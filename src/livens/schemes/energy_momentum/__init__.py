"""Energy-momentum schemes based on discrete gradients."""
