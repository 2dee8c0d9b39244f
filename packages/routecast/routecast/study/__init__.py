"""Studies: from measurements to a calibrated, validated model, its forecasts and a report, described in one file."""
