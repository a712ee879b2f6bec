"""NexMark in a small form: an auction house's persons, auctions and bids, and four queries over them."""
