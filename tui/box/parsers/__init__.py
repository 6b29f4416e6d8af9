"""From bytes that a box printed to typed values. Pure functions; `recognise.parse_output` is the way in."""
