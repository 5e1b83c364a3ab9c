"""The page of attacks: what each seat learns of membership, beside what its guarantee allows."""
