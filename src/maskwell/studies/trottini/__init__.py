"""Trottini, Fienberg, Makov and Meyer, Additive Noise and Multiplicative Bias as Disclosure Limitation Techniques."""
