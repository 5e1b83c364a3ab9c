"""What an attacker learns: membership attacks from inside a federation, and how well they do."""
