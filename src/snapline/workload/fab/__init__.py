"""FAB, SPADE's application (section 5.1): wafers, sensors and tests, and models that predict the yield."""
