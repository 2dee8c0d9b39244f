"""Studies that calibrate a router from tables of measured maxima."""
