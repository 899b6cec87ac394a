"""Measures of how risky a release is: attacker models, uniqueness, linkage, disclosure."""
