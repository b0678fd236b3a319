"""How speed changes as something grows: what is measured, by whom, and how it is shown."""
