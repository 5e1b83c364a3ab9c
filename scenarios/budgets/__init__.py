"""The budget calculator: a module for each question, from options to a result document."""
