"""Two language models: what they say of every token, with both in memory (`whole`) or block by block (`blockwise`)."""
