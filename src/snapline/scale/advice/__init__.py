"""Which protocol and which interval fit what is asked of a job: predicted by the scale model."""
