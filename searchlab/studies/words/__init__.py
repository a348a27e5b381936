"""What the text index adds: every task with texts withheld and with texts there."""
