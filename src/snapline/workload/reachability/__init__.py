"""Reachability with deletions (CheckMate VI, after FFP): which nodes can be reached, and over which paths.

Directed links and source nodes come and go while the query runs. A path begins at a source and
follows links, through no node twice and over a bounded number of links: without the bound their
number explodes once links outnumber nodes. A path that was found goes round the cycle to be
extended by further links.
"""
