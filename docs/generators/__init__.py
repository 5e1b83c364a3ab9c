"""Pages of the documentation that are read off the code: keys, commands, documents, names, mechanisms."""
