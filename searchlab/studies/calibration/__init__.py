"""Whether a relevance score is the probability of relevance that it claims to be."""
