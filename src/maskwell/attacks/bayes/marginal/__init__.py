"""What an outsider takes for the law of the records: normal laws fitted to a release."""
