"""NexMark, small and in full: an auction house's persons, auctions and bids, and four queries over them."""
