"""The directory of a run, its checkpoint, and the document that is updated each round."""
