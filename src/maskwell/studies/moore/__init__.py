"""Moore, Analysis of the Kim-Winkler Algorithm for Masking Microdata Files."""
