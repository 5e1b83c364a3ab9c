"""From the section of a scenario to clients with records."""
