"""NexMark, small and in full: persons, auctions and bids of an auction house, and seven queries."""
