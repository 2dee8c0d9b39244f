"""The accuracy board: predictions at published measurements that were not used in calibration."""
