"""How a program sees a run while it goes on: a card in a notebook, plain lines elsewhere."""
