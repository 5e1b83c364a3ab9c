"""What `fedprivacy budget` answers, a question a module: options in, a result document with words out."""
