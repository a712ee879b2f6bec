"""The last bids of each bidder, in the order of their arrival: sliding windows by rows."""
