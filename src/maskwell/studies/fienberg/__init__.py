"""Fienberg, Makov and Sanil, A Bayesian Approach to Data Disclosure: Optimal Intruder Behavior for Continuous Data."""
