"""The vectors of two embedding models for the same items: what a search loses when one takes the other's place."""
