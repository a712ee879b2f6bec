"""What was not sent, because its receiver was away: records by their identities, in memory and as files."""
