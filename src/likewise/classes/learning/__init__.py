"""The course of a training, read off its curves of class similarity: phases, and what may follow from them."""
