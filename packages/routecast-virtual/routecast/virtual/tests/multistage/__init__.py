"""Tests of multistage routers."""
