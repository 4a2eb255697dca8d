"""The instrument under test: what it says of releases that were broken on purpose."""
