"""Result documents: one class for each kind, which is written, verified and rendered."""
