"""Arithmetic that measures share: products and decompositions, distances, ranks, nearest neighbours, minibatches."""
