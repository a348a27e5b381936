"""What a photo is: its record, pixels, colours, licence and table."""
