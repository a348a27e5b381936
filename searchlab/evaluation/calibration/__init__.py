"""From cosines to chances: curves, how they are fitted, and the queries that they are fitted on."""
