"""The answer that each kind of page opens with: a sentence, a number, and three cards."""
