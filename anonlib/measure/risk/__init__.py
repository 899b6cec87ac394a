"""Measures of how risky a release is: models of attackers, uniqueness, linkage, disclosure."""
