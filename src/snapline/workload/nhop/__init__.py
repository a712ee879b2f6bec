"""N-hop (thesis 5.1.5): the walks of exactly N edges in a stream of edges, found on a cycle.

Routes are stored by the node in which they end, edges by the node from which they start, and each
meets the other whichever comes first. The output is every walk of N edges whose due times span at
most the TTL, once; a walk may pass a node, and even an edge, more than once.

This deviates from the thesis, where the output depends on the order of arrival and on the clock, so
that no oracle can tell right from wrong. There a route looks for edges but edges never look for
routes, so a walk is lost when its last edge comes late; state is cleared by wall clock after 5 s;
and only a new shortest route between two nodes goes on. Here the join is symmetric, the TTL is a
bound on the due times of one walk, and every walk counts.
"""
