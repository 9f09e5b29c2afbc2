"""Systems of the paper that no package offers, written from their publications."""
