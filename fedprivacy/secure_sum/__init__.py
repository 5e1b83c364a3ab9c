"""The secure sum by masks: the server learns the sum of clients' integers modulo 2^b, and no message."""
