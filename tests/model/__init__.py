"""A naive model of Cellar, written from the manual alone, to compare the server with."""
