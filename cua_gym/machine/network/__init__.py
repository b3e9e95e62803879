"""What a machine may reach: nothing, named hosts, or the world; and never the host's loopback.

A machine with a network stands in a network namespace of its own, with its own loopback. `policy`
says what is allowed, `namespace` makes the place, `gateway` answers names and carries connections
out of it, `way_out` is the route of an open one.
"""
