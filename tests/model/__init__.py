"""A naive model of Cellar, written from SPEC.md alone, to compare the server with."""
