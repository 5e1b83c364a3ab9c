"""Who or what is drawn, and the DpEvent of that draw."""
