"""From DpEvents to epsilon; it knows no mechanism."""
