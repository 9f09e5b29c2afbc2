"""Systems of the paper that no package offers, written compactly from their publications."""
