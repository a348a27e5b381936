"""Results of other toolkits, compared as our own are: intervals, paired tests, groups of equals."""
