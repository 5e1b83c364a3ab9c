"""Tables of rules between the keys of a training scenario, beyond the type and range of each."""
