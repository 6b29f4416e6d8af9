"""The parts that screens are made of: log view, roster, gauges, panels; each draws what it is given."""
