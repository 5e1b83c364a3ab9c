"""The secure sum by masks: the server learns the sum of clients' integers modulo 2^b.

Everything else that it receives can be simulated from that sum and from who answered in which phase, up to
breaking the ciphers.
"""
