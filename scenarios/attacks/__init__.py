"""The attack game on the real apps: runs that are attacked, replayed from each seat and scored."""
