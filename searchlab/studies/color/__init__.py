"""What a colour tolerance and a colour name mean to people."""
