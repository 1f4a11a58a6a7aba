"""Random calls: of the installed functions here, of the control planes in tests/stateful/."""
