"""From cosines to probabilities: curves, fitting them, and the scored queries to fit them on."""
