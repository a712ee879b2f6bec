"""Connections between processes, and in which order the parts are used.

A process has one `EventLoop`. It listens with a `Listener`, or dials; both run the handshake first, so a
`Connection` only ever leads to somebody who knows the secret of the run. A connection carries frames and
gives each to its `Receiver`. Nothing here starts a thread, and nothing here knows what a slot is. `proxy`
breaks the network of systems that are not ours.
"""
