"""What a page opens with: a sentence, a number and three cards; kinds with a folder have theirs there."""
