"""The page of attacks: the membership each seat infers, beside the bound of its guarantee."""
